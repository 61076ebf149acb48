"""Properties of the plan over generated worlds and histories.

A small model stands for the machine: instances that start, become ready, fail or crash, and a proxy
that acknowledges and drains when it is told to. What must hold is written as the names of the
checks.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from amphitrite.controlplane.core.desired.resources import Deployment, Endpoint
from amphitrite.controlplane.core.observed.observations import AgentReport, Instance
from amphitrite.controlplane.core.observed.status import Ref, World
from amphitrite.controlplane.core.planning.memo import Memory
from amphitrite.controlplane.core.planning.plan import Plan
from amphitrite.dataplane.table.routing_table import Address, RoutingTable

from .builders import deployment, endpoint, plan, workload

NAMES = ("blue", "green")


@dataclass
class Machine:
    """Everything that a pass reads and writes."""

    endpoint: Endpoint | None
    deployments: dict[str, Deployment] = field(default_factory=dict)
    instances: dict[str, Instance] = field(default_factory=dict)
    table: RoutingTable = field(default_factory=lambda: RoutingTable(0))
    agent: AgentReport | None = None
    broken: set[str] = field(default_factory=set)  # workloads that never come up
    now: float = 1_000.0
    port: int = 20_000
    outcomes: dict[Ref, tuple[str, int]] = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory)

    def pass_(self, cut_after: int = 99) -> Plan:
        """One pass of the reconciler; cut off after so many of its side effects."""
        world = World((self.endpoint,) if self.endpoint else (), tuple(self.deployments.values()), self.table)
        facts = world, list(self.instances.values()), [self.agent] if self.agent else [], self.now
        decided = plan(*facts, memory=self.memory)
        assert decided == plan(*facts), "what is remembered changes nothing"
        self.check_safety(world, decided)
        steps = [
            lambda: self._publish(decided.table),
            *(lambda s=s: self._start(s) for s in decided.start),
            *(lambda s=s: self._stop(s.instance_id) for s in decided.stop),
            *(lambda i=i: self.instances.pop(i, None) for i in decided.forget),
            lambda: self._record(decided),
            lambda: self._remove(decided),
        ]
        for step in steps[:cut_after]:
            step()
        return decided

    def check_safety(self, world: World, decided: Plan) -> None:
        addressed = {a for c in world.table.clusters for a in c.addresses}
        drained = self.agent is not None and self.agent.drained_version >= world.table.version
        for stop in decided.stop:
            instance = self.instances[stop.instance_id]
            if instance.ready_at is not None and instance.live:
                assert instance.address not in addressed, "stopped an instance that is still routed"
                assert drained, "stopped an instance that is not drained"
        for cluster in decided.table.clusters:
            serving = {i.address for i in self.instances.values() if i.phase in ("ready", "unready")}
            assert set(cluster.addresses) <= serving, "routed an instance that is not there"
        living = [i for i in self.instances.values() if i.phase not in ("exited", "stopping")]
        for start in decided.start:
            assert not any(i.workload == start.workload and i.slot == start.slot for i in living), (
                "started a slot that is taken"
            )
            failed = [i for i in self.instances.values() if (i.workload, i.slot) == (start.workload, start.slot)]
            last = max((i.exited_at or 0.0 for i in failed), default=0.0)
            pause = 2.0 ** (len(failed) - 1) if failed and all(i.ready_at is None for i in failed) else 0.0
            assert self.now - last >= min(pause, 300.0), "a failing instance makes the loop hot"
        assert len({(s.workload.name, s.slot) for s in decided.start}) == len(decided.start)
        wanted = {(n, d.instance_count) for n, d in self.deployments.items() if not d.deleting}
        for name, count in wanted:
            slots = [s for s in decided.start if s.workload == self.deployments[name].workload]
            assert all(s.slot < count for s in slots), "more instances than asked for"

    def _start(self, start: object) -> None:
        s = start
        self.port += 1
        identity = f"{s.workload.name}-{s.slot}-{s.attempt}"  # type: ignore[attr-defined]
        self.instances.setdefault(
            identity,
            Instance(
                identity,
                s.workload,
                s.slot,
                s.attempt,
                "starting",
                Address("127.0.0.1", self.port),
                self.now,  # type: ignore[attr-defined]
            ),
        )

    def _stop(self, identity: str) -> None:
        self.instances[identity] = replace(self.instances[identity], phase="stopping", requested_stop=True)

    def _publish(self, wanted: RoutingTable) -> None:
        if not wanted.same_content(self.table):
            self.table = replace(wanted, version=self.table.version + 1)

    def _record(self, decided: Plan) -> None:
        for ref, status in decided.statuses:
            self.outcomes[ref] = (status.state, status.observed_generation)
            if ref.deployment and ref.deployment in self.deployments:
                one = self.deployments[ref.deployment]
                self.deployments[ref.deployment] = replace(
                    one,
                    observed_generation=status.observed_generation,
                    ever_succeeded=one.ever_succeeded or status.state == "Succeeded",
                )
            elif self.endpoint and not ref.deployment:
                self.endpoint = replace(self.endpoint, observed_generation=status.observed_generation)

    def _remove(self, decided: Plan) -> None:
        for ref in decided.remove:
            if ref.deployment:
                self.deployments.pop(ref.deployment, None)
            else:
                self.endpoint = None

    def settle(self) -> None:
        """Time passes: processes come up or fail, stopping ones end, the proxy catches up."""
        self.now += 1.0
        for identity, i in list(self.instances.items()):
            if i.phase == "starting" and i.workload.name in self.broken:
                self.instances[identity] = replace(
                    i, phase="exited", exited_at=self.now, exit_code=1, reason="cannot load"
                )
            elif i.phase in ("starting", "unready"):
                self.instances[identity] = replace(i, phase="ready", ready_at=i.ready_at or self.now)
            elif i.phase == "stopping":
                self.instances[identity] = replace(i, phase="exited", exited_at=self.now, exit_code=0)
        self.agent = AgentReport("local", self.table.version, self.table.version, self.now)


def put(machine: Machine, name: str, version: int, count: int) -> None:
    """A user's PUT of a deployment."""
    old = machine.deployments.get(name)
    if machine.endpoint is None or (old and old.deleting):
        return
    generation = old.generation + 1 if old else 1
    machine.deployments[name] = deployment(
        name,
        version=version,
        count=count,
        generation=generation,
        observed_generation=old.observed_generation if old else 0,
        ever_succeeded=bool(old and old.ever_succeeded),
    )


def traffic(machine: Machine, share: int) -> None:
    """A user's traffic map, if the API would take it."""
    there = {n for n, d in machine.deployments.items() if not d.deleting}
    wanted = {"blue": share, "green": 100 - share}
    named = {n: v for n, v in wanted.items() if v}
    if machine.endpoint is None or machine.endpoint.deleting or not set(named) <= there:
        return
    machine.endpoint = replace(
        machine.endpoint, traffic=tuple(sorted(named.items())), generation=machine.endpoint.generation + 1
    )


def delete(machine: Machine, name: str) -> None:
    if machine.endpoint and name in machine.deployments and name not in dict(machine.endpoint.traffic):
        machine.deployments[name] = replace(machine.deployments[name], deleting=True)


def crash(machine: Machine, index: int) -> None:
    running = sorted(i for i, v in machine.instances.items() if v.phase in ("ready", "unready", "starting"))
    if running:
        identity = running[index % len(running)]
        machine.instances[identity] = replace(
            machine.instances[identity], phase="exited", exited_at=machine.now, exit_code=-9, reason="killed"
        )


name = st.sampled_from(NAMES)
event = st.one_of(
    st.tuples(st.just("put"), name, st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.just("traffic"), st.integers(0, 100)),
    st.tuples(st.just("delete"), name),
    st.tuples(st.just("crash"), st.integers(0, 5)),
    st.tuples(st.just("break"), name, st.integers(1, 3)),
    st.tuples(st.just("silence")),
    st.tuples(st.just("settle")),
    st.tuples(st.just("calm")),
    st.tuples(st.just("pass"), st.integers(0, 6)),
    st.tuples(st.just("drop")),
)


def play(machine: Machine, events: list[tuple[object, ...]]) -> None:
    for kind, *rest in events:
        match kind, rest:
            case "put", [str(n), int(version), int(count)]:
                put(machine, n, version, count)
            case "traffic", [int(share)]:
                traffic(machine, share)
            case "delete", [str(n)]:
                delete(machine, n)
            case "crash", [int(index)]:
                crash(machine, index)
            case "break", [str(n), int(version)]:
                machine.broken.add(workload(n, version).name)
            case "silence", _:
                machine.agent = None
            case "settle", _:
                machine.settle()
            case "calm", _:
                for _ in range(3):
                    machine.pass_()
                    machine.settle()
            case "pass", [int(cut)]:
                machine.pass_(cut)
            case "drop", _:
                if machine.endpoint:
                    machine.endpoint = replace(machine.endpoint, deleting=True, traffic=())


def converge(machine: Machine) -> Plan:
    decided = machine.pass_()
    for _ in range(40):
        machine.settle()
        decided = machine.pass_()
    return decided


@settings(max_examples=150, deadline=None)
@given(st.lists(event, max_size=25))
def test_no_history_breaks_safety_and_all_end_where_they_should(events: list[tuple[object, ...]]) -> None:
    """Also when any pass is cut off after any side effect."""
    machine = Machine(endpoint())
    play(machine, events)
    machine.now += 1_000  # every back-off is over
    decided = converge(machine)
    if machine.endpoint is None:
        assert not machine.deployments and not machine.instances and not machine.table.routes
        return
    for one in machine.deployments.values():
        state, observed = machine.outcomes[Ref("ep", one.name)]
        running = [i for i in machine.instances.values() if i.workload == one.workload and i.phase == "ready"]
        assert observed == one.generation, "an operation would never end"
        if one.workload.name in machine.broken and len(running) < one.instance_count:
            assert state == "Failed"
        else:
            assert (state, len(running)) == ("Succeeded", one.instance_count)
    if machine.broken.isdisjoint(d.workload.name for d in machine.deployments.values()):
        assert (decided.start, decided.stop, decided.forget, decided.remove) == ((), (), (), ()), "not at rest"
        assert decided.table.same_content(machine.table)
        route = machine.table.routes[0]
        assert (route.split, route.mirrors) == (machine.endpoint.traffic, machine.endpoint.mirror_traffic)


@settings(max_examples=150, deadline=None)
@given(st.lists(event, max_size=15))
def test_a_serving_deployment_is_never_left_without_an_instance(events: list[tuple[object, ...]]) -> None:
    """From the first success on, without crashes, what traffic names has a ready instance in every
    published table."""
    machine = Machine(endpoint())
    put(machine, "blue", 1, 1)
    traffic(machine, 100)
    converge(machine)
    for one in events:
        if one[0] in ("crash", "drop"):
            continue
        play(machine, [one])
        serving = {c.name: c.addresses for c in machine.table.clusters}
        for route in machine.table.routes:
            clusters = {t.name: t.cluster for t in route.targets}
            for target, _ in route.split:
                cluster = clusters[target]
                assert cluster is not None and serving[cluster], f"{target} is routed to nothing"


@settings(max_examples=100, deadline=None)
@given(st.lists(event, max_size=25))
def test_the_same_facts_give_the_same_plan(events: list[tuple[object, ...]]) -> None:
    machine = Machine(endpoint())
    play(machine, events)
    assert machine.pass_(0) == machine.pass_(0)
