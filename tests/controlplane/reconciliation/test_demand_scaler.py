"""The scaler of a target utilization: samples in the database in, numbers of instances out.

Decides nothing about the numbers themselves, which are ``core/test_scaling.py``'s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from amphitrite.controlplane.agents.agent_registry import AgentRegistry
from amphitrite.controlplane.core.capacity.node_capacity import NodeCapacity
from amphitrite.controlplane.core.desired.compute_clusters import Compute
from amphitrite.controlplane.core.history.revisions import Author
from amphitrite.controlplane.core.observed.observations import AgentReport
from amphitrite.controlplane.core.observed.status import Ref
from amphitrite.controlplane.reconciliation.autoscaler import Autoscaler
from amphitrite.controlplane.reconciliation.demand_scaler import TargetUtilization
from amphitrite.controlplane.store.reports.demand_samples import StoredSamples
from amphitrite.controlplane.store.state.database import SqlStore

from ...stores import new_store
from ..runtimes.memory_runtime import MemoryRuntime

BLUE = Ref("ep", "blue")
#: Of a deployment; an instance takes 4 requests at once.
PER_INSTANCE = 4
#: Seconds between two samples, so that minutes take few passes.
STEP_S = 5
#: Requests at once, at each step.
Load = Callable[[int], int]


@dataclass
class Stage:
    """One deployment, its store, and a clock that passes by steps."""

    store: SqlStore
    nodes: tuple[NodeCapacity, ...] = ()
    now: float = 1_800_000_000.0
    flushes: int = 0
    wakes: int = 0
    counts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.samples = StoredSamples(self.store.database)
        self.agents = AgentRegistry(lambda: None)
        self.runtime = MemoryRuntime(lambda: self.now, nodes=self.nodes)
        self.restart()

    def restart(self) -> None:
        """Another control plane leads, which knows what is stored."""
        computes = [Compute("kubernetes", "ns", None)] if self.nodes else []
        self.scaler = TargetUtilization(self.store, self.samples, self.agents, self.runtime, lambda: computes)
        self.scaler.begin()
        self.loop = Autoscaler(self.store, [self.scaler], self._wake)

    def _wake(self) -> None:
        self.wakes += 1

    def deploy(self, compute: str = "local", **more: Any) -> None:
        settings = {
            "type": "target_utilization",
            "min_instances": 1,
            "max_instances": 20,
            "polling_interval": STEP_S,
            **more,
        }
        document = {
            "name": "blue", "instance_type": "Standard_DS2_v2", "scale_settings": settings,
            "request_settings": {"max_concurrent_requests_per_instance": PER_INSTANCE},
        }  # fmt: skip
        model = {"name": "m", "version": "1", "digest": "d", "model_names": ["m"]}
        self.store.put_deployment(
            "ep", document, model, compute=compute, if_match=None, if_none_match=False, now=self.now
        )

    def tell(self, in_flight: int, refused: int = 0, *, agent: str = "a", held: int = 0) -> None:
        """A step as a proxy tells it: each request takes a second."""
        self.flushes += 1
        work = STEP_S * in_flight
        row = ["ep", "blue", self.now, float(STEP_S), in_flight, held, work, float(work), refused]
        self.samples.put(agent, self.flushes, [row], self.now)

    def live(self, *agents: str) -> None:
        for agent in agents:
            self.agents.report(AgentReport(agent, 1, 1, self.now))

    def step(self) -> int:
        """A pass, and time passes. The number that is in force."""
        self.loop.make_pass(self.now)
        self.now += STEP_S
        self.counts.append(self.count)
        return self.count

    @property
    def count(self) -> int:
        return self.store.load_world().deployments[0].instance_count

    def play(self, load: Load, steps: int) -> list[int]:
        """The numbers of each step under ``load``. What does not fit is refused."""
        begun = len(self.counts)
        for step in range(steps):
            self.live("a")
            wanted = load(step)
            fits = min(wanted, self.count * PER_INSTANCE)
            self.tell(fits, STEP_S * (wanted - fits))
            self.step()
        return self.counts[begun:]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return make_stage(tmp_path / "store.db")


def make_stage(path: Path, nodes: tuple[NodeCapacity, ...] = ()) -> Stage:
    store = new_store(path)
    store.put_endpoint({"name": "ep"}, if_match=None, if_none_match=False, now=1.0)
    return Stage(store, nodes)


def burst(step: int) -> int:
    return 30 if 4 <= step < 16 else 2


def test_a_burst_is_followed_and_left_again_and_each_step_says_why(stage: Stage) -> None:
    stage.deploy()
    counts = stage.play(burst, 90)
    assert counts[3] == 1
    assert 8 <= max(counts[4:7]) <= 20, "capacity for 30 is asked for within seconds"
    assert counts[-1] <= 3
    events = stage.store.scale_events(BLUE)
    assert [event.before for event in events[1:]] == [event.after for event in events[:-1]], "no step is missing"
    assert {(event.by, event.mode) for event in events} == {("target_utilization", "apply")}
    assert "requests at once on" in events[0].reason and events[0].reason.startswith("1 -> ")
    scale = stage.store.get_deployment("ep", "blue").scale
    assert scale is not None and (scale.reason, scale.changed_at) == (events[-1].reason, events[-1].at)
    assert stage.wakes == len(events)


def test_restarts_and_changes_of_the_leader_lose_no_window(tmp_path: Path) -> None:
    steady, restarted = make_stage(tmp_path / "1.db"), make_stage(tmp_path / "2.db")
    steady.deploy()
    restarted.deploy()
    wanted = steady.play(burst, 90)
    found = []
    for step in range(90):
        if step % 3 == 0:
            restarted.restart()
        found += restarted.play(lambda _, at=step: burst(at), 1)  # type: ignore[misc]
    assert found == wanted


def test_what_several_proxies_see_adds_up(stage: Stage) -> None:
    stage.deploy()
    for _ in range(10):
        stage.live("a", "b", "c")
        for agent in "abc":
            stage.tell(6, agent=agent)
        stage.step()
    assert stage.count == 7  # 18 requests on 4 x 70 %.


def test_a_silent_proxy_is_not_an_idle_one(stage: Stage) -> None:
    stage.deploy()
    for step in range(60):
        stage.live("a", "b")
        if step >= 50:
            stage.agents.forget("b")  # From now on nothing waits for it.
        stage.tell(0)
        if step < 12:
            stage.tell(12, agent="b")
        stage.step()
    assert stage.counts[11] == 5
    assert set(stage.counts[12:]) == {5}, "nor does the silence count as quiet afterwards"


def test_without_any_numbers_nothing_changes(stage: Stage) -> None:
    stage.deploy()
    stage.play(lambda _: 12, 6)
    count = stage.count
    for _ in range(60):
        stage.step()
    assert stage.count == count > 1


def test_a_recommendation_alone_changes_nothing(stage: Stage) -> None:
    stage.deploy(mode="recommend")
    assert set(stage.play(burst, 60)) == {1}
    events = stage.store.scale_events(BLUE)
    assert events and {event.mode for event in events} == {"recommend"}
    assert max(event.after for event in events) >= 8
    assert [event.before for event in events[1:]] == [event.after for event in events[:-1]]
    assert stage.wakes == 0
    stage.deploy()
    assert stage.count == 1, "it begins with what is in force"


def test_what_has_no_room_is_not_asked_for(tmp_path: Path) -> None:
    node = NodeCapacity("n1", {"cpu": "8", "memory": "64Gi", "pods": "100"})
    stage = make_stage(tmp_path / "store.db", (node,))
    stage.deploy(compute="kubernetes")
    counts = stage.play(lambda _: 60, 8)
    (event, *_) = stage.store.scale_events(BLUE)
    assert "the compute has room for" in event.reason
    assert max(counts) < 10


def test_an_idle_deployment_writes_nothing(stage: Stage) -> None:
    stage.deploy()
    stage.play(lambda _: 0, 5)
    before = stage.store.scales()
    stage.play(lambda _: 0, 80)
    assert stage.store.scales() == before
    assert stage.store.scale_events(BLUE) == []
    assert len(stage.samples.since(0)) < 75, "old samples are deleted"


def test_new_limits_count_at_once_and_are_told(stage: Stage) -> None:
    stage.deploy()
    stage.step()
    stage.deploy(min_instances=3)
    assert stage.count == 3
    stage.step()
    (event,) = stage.store.scale_events(BLUE)
    assert (event.before, event.after, event.reason) == (1, 3, "1 -> 3: min_instances 3, max_instances 20")


def test_who_sleeps_wakes_with_one_instance_however_many_wait(stage: Stage) -> None:
    stage.deploy(min_instances=0, idle_timeout=60)
    stage.play(lambda _: 0, 40)
    assert stage.count == 0
    asleep = stage.store.scale_events(BLUE)[-1]
    assert asleep.after == 0 and "no request for" in asleep.reason and "idle_timeout 60 s" in asleep.reason
    stage.restart()
    for _ in range(3):  # It starts.
        stage.live("a")
        stage.tell(0, held=50)
        assert stage.step() == 1
    (deployment,) = stage.store.load_world().deployments
    stage.runtime.start(deployment.workload, 0, 1, deployment.readiness_probe, deployment.liveness_probe)
    stage.runtime.settle()
    stage.tell(4, refused=100, held=30)
    assert stage.step() > 1


def test_a_paused_deployment_is_left_alone_and_goes_on_with_its_number(stage: Stage) -> None:
    stage.deploy()
    stage.play(lambda _: 12, 6)
    before = stage.count, len(stage.store.scale_events(BLUE))
    stage.store.set_pause("ep", "blue", True, if_match=None, now=stage.now, by=Author("ann"))
    stage.play(lambda _: 0, 40)
    assert (stage.count, len(stage.store.scale_events(BLUE))) == (0, before[1])
    stage.store.set_pause("ep", "blue", False, if_match=None, now=stage.now, by=Author("ann"))
    assert (stage.count, before[0] > 1) == (before[0], True)
