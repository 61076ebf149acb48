"""No random sequence of changes on a cluster with few GPUs ends in a deadlock, and none takes more
than there are.

A small model stands for the cluster: pods that each need one GPU, a scheduler that gives a free one
to a random pending pod, and says of the others that they lack room.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amphitrite.controlplane.core.desired.resources import CapacityPolicy, Deployment, WorkloadSpec
from amphitrite.controlplane.core.observed.observations import AgentReport, Fault, Instance
from amphitrite.controlplane.core.observed.status import Ref, World
from amphitrite.dataplane.table.routing_table import Address, RoutingTable

from .builders import deployment, endpoint, plan

GPUS = 4
#: Long enough for every old instance to give way one after the other.
PATIENCE = 400


@dataclass
class Pod:
    workload: WorkloadSpec
    name: str
    port: int
    created: float
    scheduled: bool = False
    ready_at: float | None = None
    stopping: bool = False


@dataclass
class Cluster:
    dice: random.Random
    gpus: int = GPUS
    deployments: dict[str, Deployment] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    table: RoutingTable = field(default_factory=lambda: RoutingTable(0))
    now: float = 1_000.0
    changed_at: float = 1_000.0
    count: int = 0
    states: dict[str, str] = field(default_factory=dict)

    def instances(self) -> list[Instance]:
        """As a cluster's runtime maps pods to slots: ready ones first, then the oldest."""
        by_workload: dict[str, list[Pod]] = {}
        for pod in self.pods.values():
            by_workload.setdefault(pod.workload.name, []).append(pod)
        found = []
        for pods in by_workload.values():
            pods.sort(key=lambda p: (p.stopping, p.ready_at is None, p.created, p.name))
            found += [self._instance(pod, slot) for slot, pod in enumerate(pods)]
        return found

    def _instance(self, pod: Pod, slot: int) -> Instance:
        phase = "stopping" if pod.stopping else "starting" if pod.ready_at is None else "ready"
        fault = None
        if not pod.scheduled:
            fault = Fault("PodUnschedulable", "no GPU", lacks_capacity=True, since=max(pod.created, self.changed_at))
        address = Address("10.0.0.1", pod.port) if pod.scheduled else None
        return Instance(
            pod.name, pod.workload, slot, 1, phase, address, pod.created, pod.ready_at,  # type: ignore[arg-type]
            requested_stop=pod.stopping, fault=fault,
        )  # fmt: skip

    def step(self) -> None:
        """One pass, then a second passes on the cluster."""
        world = World((endpoint(),), tuple(self.deployments.values()), self.table)
        agents = [AgentReport("p", self.table.version, self.table.version, self.now)]
        decided = plan(world, self.instances(), agents, self.now)
        addressed = {a.port for c in self.table.clusters for a in c.addresses}
        for start in decided.start:
            self.count += 1
            self.pods[f"p{self.count}"] = Pod(start.workload, f"p{self.count}", 20_000 + self.count, self.now)
        for stop in decided.stop:
            pod = self.pods[stop.instance_id]
            assert pod.ready_at is None or pod.port not in addressed, "stopped a pod that is still routed"
            pod.stopping = True
        if not decided.table.same_content(self.table):
            self.table = replace(decided.table, version=self.table.version + 1)
        self.states = {r.deployment: s.state for r, s in decided.statuses if r.deployment}
        for ref in decided.remove:
            self._removed(ref)
        self._pass_time()

    def _removed(self, ref: Ref) -> None:
        assert ref.deployment is not None
        del self.deployments[ref.deployment]

    def _pass_time(self) -> None:
        self.now += 1.0
        for name, pod in list(self.pods.items()):
            if pod.stopping:
                del self.pods[name]
                self.changed_at = self.now
            elif pod.scheduled and pod.ready_at is None and self.dice.random() < 0.5:
                pod.ready_at = self.now
        free = self.gpus - sum(pod.scheduled for pod in self.pods.values())
        assert free >= 0
        waiting = [pod for pod in self.pods.values() if not pod.scheduled]
        for pod in self.dice.sample(waiting, min(free, len(waiting))):
            if self.dice.random() < 0.7:
                pod.scheduled = True

    def put(self, name: str, version: int, count: int, policy: CapacityPolicy) -> None:
        old = self.deployments.get(name)
        if old is None or not old.deleting:
            self.deployments[name] = deployment(
                name, version=version, count=count, capacity_policy=policy,
                generation=old.generation + 1 if old else 1, ever_succeeded=bool(old),
            )  # fmt: skip

    def demand(self) -> int:
        return sum(d.instance_count for d in self.deployments.values() if not d.deleting)

    def served(self, name: str) -> int:
        """Addresses in the table behind a deployment."""
        clusters = {c.name: len(c.addresses) for c in self.table.clusters}
        targets = {t.name: t.cluster for r in self.table.routes for t in r.targets}
        return clusters.get(targets.get(name) or "", 0)

    def all_succeeded(self) -> bool:
        return all(self.states.get(name) == "Succeeded" for name in self.deployments)


names = st.sampled_from(("blue", "green", "red"))
events = st.lists(
    st.one_of(
        st.tuples(st.just("put"), names, st.integers(1, 3), st.integers(1, GPUS)),
        st.tuples(st.just("delete"), names),
        st.tuples(st.just("steps"), st.integers(1, 30)),
    ),
    max_size=12,
)


def play(cluster: Cluster, script: list[tuple[object, ...]], policy: CapacityPolicy) -> None:
    for kind, *rest in script:
        match kind, rest:
            case "put", [str(name), int(version), int(count)]:
                cluster.put(name, version, count, policy)
            case "delete", [str(name)] if name in cluster.deployments:
                cluster.deployments[name] = replace(cluster.deployments[name], deleting=True)
            case "steps", [int(steps)]:
                for _ in range(steps):
                    cluster.step()


def settle(cluster: Cluster) -> None:
    for _ in range(PATIENCE):
        cluster.step()
        if cluster.all_succeeded() and all(not pod.stopping for pod in cluster.pods.values()):
            return


@settings(max_examples=75, deadline=None)
@given(events, st.integers())
def test_drain_first_always_ends_when_what_is_wanted_fits(script: list[tuple[object, ...]], seed: int) -> None:
    cluster = Cluster(random.Random(seed))
    play(cluster, script, "drain-first")
    for name in sorted(cluster.deployments):
        if cluster.demand() > cluster.gpus:
            cluster.deployments[name] = replace(cluster.deployments[name], deleting=True)
    settle(cluster)
    assert cluster.all_succeeded(), (cluster.states, cluster.pods)
    assert len(cluster.pods) == cluster.demand()
    for name, one in cluster.deployments.items():
        assert cluster.served(name) == one.instance_count


@settings(max_examples=50, deadline=None)
@given(events, st.integers())
def test_wait_ends_as_soon_as_there_is_room(script: list[tuple[object, ...]], seed: int) -> None:
    cluster = Cluster(random.Random(seed))
    play(cluster, script, "wait")
    cluster.gpus += sum(pod.scheduled for pod in cluster.pods.values()) + cluster.demand()
    settle(cluster)
    assert cluster.all_succeeded(), (cluster.states, cluster.pods)
    assert len(cluster.pods) == cluster.demand()


@settings(max_examples=50)
@given(st.integers(1, GPUS), st.integers())
def test_wait_never_takes_from_what_serves(count: int, seed: int) -> None:
    cluster = Cluster(random.Random(seed), gpus=count)
    cluster.put("blue", 1, count, "wait")
    settle(cluster)
    cluster.put("blue", 2, count, "wait")
    for _ in range(60):
        cluster.step()
        assert cluster.served("blue") == count


@pytest.mark.slow
@settings(max_examples=40)
@given(st.integers(2, GPUS), st.integers())
def test_drain_first_never_leaves_less_than_half(count: int, seed: int) -> None:
    cluster = Cluster(random.Random(seed), gpus=count)
    cluster.put("blue", 1, count, "drain-first")
    settle(cluster)
    cluster.put("blue", 2, count, "drain-first")
    least = count
    for _ in range(PATIENCE):
        cluster.step()
        least = min(least, cluster.served("blue"))
    assert cluster.all_succeeded()
    assert least >= count // 2
