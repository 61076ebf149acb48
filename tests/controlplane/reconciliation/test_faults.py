"""A pass of the reconciler cut off at each of its side effects, and each of them refused once.

The store is the real one on SQLite. Cutting a pass off and making a new reconciler over the same
store and runtime is what ``kill -9`` of the control plane leaves behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from amphitrite.controlplane.agents.agent_registry import AgentRegistry, TableFeed
from amphitrite.controlplane.core.observed.observations import AgentReport
from amphitrite.controlplane.core.observed.status import Ref
from amphitrite.controlplane.reconciliation.reconciler import Reconciler
from amphitrite.controlplane.store.state.database import SqlStore
from amphitrite.schemas.errors import Error

from ...stores import new_store
from ..runtimes.memory_runtime import MemoryRuntime

pytestmark = [pytest.mark.slow, pytest.mark.early]
BLUE = Ref("ep", "blue")


class Killed(BaseException):
    """The process is gone: nothing may catch this."""


#: What a pass does to the world, by who does it.
EFFECTS = ("start", "stop", "forget", "publish", "published", "record", "remove")


class Counting:
    """Passes every call on, and dies just before or just after the n-th effect."""

    def __init__(self, inner: Any, life: Life) -> None:
        self._inner, self._life = inner, life

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._inner, name)
        if name not in EFFECTS:
            return attribute

        def call(*args: Any, **kwargs: Any) -> Any:
            self._life.step(name, "before")
            answer = attribute(*args, **kwargs)
            self._life.step(name, "after")
            return answer

        return call


@dataclass
class Life:
    """How many steps are left before the process dies; None: it does not."""

    left: int | None = None
    seen: list[str] = field(default_factory=list)

    def effects(self, since: int = 0) -> set[str]:
        return {step.split()[1] for step in self.seen[since:]}

    def step(self, name: str, when: str) -> None:
        self.seen.append(f"{when} {name}")
        if self.left is not None:
            if self.left == 0:
                raise Killed
            self.left -= 1


class Plant:
    """A store, a runtime and a proxy that outlive their reconciler."""

    def __init__(self, path: Path) -> None:
        self.now = 1_000.0
        self.store: SqlStore = new_store(path)
        self.runtime = MemoryRuntime(lambda: self.now)
        self.registry = AgentRegistry(lambda: None)
        self.operations: list[str] = []

    def reconciler(self, life: Life) -> Reconciler:
        return Reconciler(
            Counting(self.store, life),
            Counting(self.runtime, life),
            self.registry,
            Counting(TableFeed(), life),
            lambda: self.now,
            max_body_bytes=1024,
        )

    def settle(self) -> None:
        """A second passes: instances come up or end, the proxy has taken the newest table over and
        drained."""
        self.now += 1
        self.runtime.settle()
        version = self.store.load_world().table.version
        self.registry.report(AgentReport("local", version, version, self.now))

    def converge(self, life: Life) -> None:
        """Passes until one has nothing to do but to publish what is published; nine at most."""
        reconciler = self.reconciler(life)
        for _ in range(9):
            before = len(life.seen)
            reconciler.run_once()
            self.settle()
            if life.effects(before) <= {"publish", "published"}:
                return

    def put_blue(self, version: int) -> None:
        document = {"name": "blue", "endpoint_name": "ep", "model": f"azureml:m:{version}"}
        model = {"name": "m", "version": str(version), "digest": f"d{version}", "model_names": ["m"]}
        _, operation = self.store.put_deployment(
            "ep", {**document, "instance_type": "Standard_DS3_v2", "instance_count": 2}, model,
            if_match=None, if_none_match=False, now=self.now,
        )  # fmt: skip
        self.operations.append(operation.id)

    def put_endpoint(self, traffic: dict[str, int]) -> None:
        document = {"name": "ep", "auth_mode": "key", "traffic": traffic}
        self.store.put_endpoint(document, if_match=None, if_none_match=False, now=self.now)


@pytest.fixture
def plant(tmp_path: Path) -> Iterator[Plant]:
    one = Plant(tmp_path / "store.db")
    yield one
    one.store.close()


def create(plant: Plant) -> None:
    plant.put_endpoint({})
    plant.put_blue(1)


def update(plant: Plant) -> None:
    plant.put_blue(2)


def delete(plant: Plant) -> None:
    operation = plant.store.delete(BLUE, if_match=None, now=plant.now)
    assert operation is not None
    plant.operations.append(operation.id)


#: Each change, and what it starts from.
CHANGES: dict[str, tuple[Callable[[Plant], None], ...]] = {
    "create": (create,),
    "update": (create, update),
    "delete": (create, delete),
}


def steps_of(path: Path, change: str) -> list[str]:
    """Every step that an undisturbed change takes."""
    one, life = Plant(path), Life()
    *before, act = CHANGES[change]
    for earlier in before:
        earlier(one)
        one.converge(Life())
    act(one)
    one.converge(life)
    one.store.close()
    return life.seen


@pytest.mark.parametrize("change", CHANGES)
def test_a_control_plane_killed_at_any_step_is_made_good_by_the_next(tmp_path: Path, change: str) -> None:
    steps = steps_of(tmp_path / "undisturbed.db", change)
    expected = {"create": {"start"}, "update": {"start", "stop", "forget"}, "delete": {"stop", "forget", "remove"}}
    assert Life(seen=steps).effects() >= expected[change] | {"publish", "record"}
    print(f"{change}: {len(steps)} steps")
    *before, act = CHANGES[change]
    for cut in range(len(steps)):
        plant = Plant(tmp_path / f"{change}-{cut}.db")
        for earlier in before:
            earlier(plant)
            plant.converge(Life())
        act(plant)
        with pytest.raises(Killed):
            plant.converge(Life(left=cut))
        plant.settle()
        plant.converge(Life())
        check_end(plant, change, steps[cut])
        plant.store.close()


def check_end(plant: Plant, change: str, at: str) -> None:
    """The end is the one that an undisturbed change has: no orphan, no open operation, the right
    table."""
    assert {plant.store.get_operation(one).status for one in plant.operations} == {"Succeeded"}, at
    running = sorted(i.id for i in plant.runtime.observe())
    [route] = plant.store.load_world().table.routes
    if change == "delete":
        assert running == [] and route.targets == (), at
        return
    [wanted] = plant.store.load_world().deployments
    assert [i.rsplit("-", 2)[0] for i in running] == [wanted.workload.name] * 2, at
    assert [t.cluster for t in route.targets] == [wanted.workload.name], at
    assert plant.store.get_deployment("ep", "blue").status.state == "Succeeded", at


@pytest.mark.parametrize("verb", ["start", "stop", "forget"])
def test_what_the_runtime_refuses_once_is_done_later(plant: Plant, verb: str) -> None:
    reconciler = plant.reconciler(Life())
    create(plant)
    if verb == "start":
        plant.runtime.fail_once("start", Error("RuntimeUnavailable", "no Triton here"))
        reconciler.run_once()
        shown = plant.store.get_deployment("ep", "blue").status
        assert (shown.state, shown.error and shown.error.message) == ("Failed", "no Triton here")
        assert plant.store.get_operation(plant.operations.pop()).status == "Failed"
    plant.converge(Life())
    update(plant)
    if verb != "start":
        plant.runtime.fail_once(verb, Error("RuntimeUnavailable", "not now"))
    for _ in range(15):
        try:
            reconciler.run_once()
        except Error as error:
            assert error.message == "not now"
        plant.settle()
    check_end(plant, "update", verb)


def test_nothing_to_do_writes_nothing(plant: Plant) -> None:
    life = Life()
    reconciler = plant.reconciler(life)
    create(plant)
    for number in range(12):
        if number == 9:
            life.seen.clear()
        reconciler.run_once()
        plant.settle()
    assert life.effects() == {"publish", "published"}
