"""A newer table that comes in the middle of an older one: what was waited for is waited for
again."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator

import pytest

from amphitrite.dataplane.envoy.process.admin_client import Host
from amphitrite.dataplane.envoy.translate.resources import CLUSTER, ROUTES, SCOPES
from amphitrite.dataplane.envoy.xds.delta_stream import Snapshot
from amphitrite.dataplane.envoy.xds.table_updates import TableUpdater
from amphitrite.dataplane.table.routing_table import Address
from amphitrite.dataplane.table.saved_table import SavedTable

from .test_stages import A, B, table


class Envoy:
    """Takes whatever it is given at once; an address is healthy when the test says so."""

    client_has_resources = True

    def __init__(self, changed: threading.Condition) -> None:
        self._changed = changed
        self.healthy = {A}
        self.looked = 0
        self.published: list[Snapshot] = []

    def publish(self, snapshot: Snapshot) -> None:
        self.published.append(snapshot)

    def in_force(self) -> bool:
        return True

    def hosts(self, clusters: Collection[str]) -> dict[str, list[Host]]:
        with self._changed:
            self.looked += 1
            self._changed.notify_all()
            return {name: [Host(address, address in self.healthy, 0) for address in (A, B)] for name in clusters}


class Agent:
    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.envoy = Envoy(self.changed)
        self.saved: list[SavedTable] = []
        self.updater = TableUpdater(self.envoy, self.envoy, self.changed, self.saved.append, self._notify)

    def _notify(self) -> None:
        with self.changed:
            self.changed.notify_all()

    def in_force(self, version: int) -> bool:
        return self.updater.progress().acknowledged_version == version

    def looks_again(self) -> None:
        """Envoy is asked for its hosts' health twice more, so at least once by what was submitted
        last."""
        with self.changed:
            before = self.envoy.looked
            assert self.changed.wait_for(lambda: self.envoy.looked >= before + 2, 20)

    def wait(self, version: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: self.in_force(version), 20), self.updater.progress()


@pytest.fixture
def agent() -> Iterator[Agent]:
    yield from running(Agent())


def running(made: Agent) -> Iterator[Agent]:
    thread = threading.Thread(target=made.updater.run)
    thread.start()
    yield made
    made.updater.stop()
    thread.join()


def addresses(agent: Agent) -> tuple[Address, ...]:
    return agent.updater.table.clusters[0].addresses


def test_a_newer_table_waits_for_the_instances_of_the_one_that_it_interrupts(agent: Agent) -> None:
    """Else the address that B replaces would be let go while B cannot serve."""
    agent.updater.submit(table(1, x=(4, (A,))))
    agent.wait(1)
    agent.updater.submit(table(2, x=(4, (B,))))
    agent.looks_again()
    agent.updater.submit(table(3, x=(8, (B,))))
    agent.looks_again()
    assert not agent.in_force(3)
    assert addresses(agent) == (A,)
    agent.envoy.healthy = {A, B}
    agent.wait(3)
    assert addresses(agent) == (B,)
    assert [saved.table.version for saved in agent.saved][-1] == 3


def test_an_envoy_that_connects_before_the_saved_table_is_applied_keeps_its_routes() -> None:
    """It has them of an earlier agent."""
    new = Agent()
    new.updater.restore(SavedTable(table(1, x=(4, (A,))), 1, 0.0))
    for agent in running(new):
        agent.wait(1)
        agent.updater.submit(table(2, x=(4, (A,)), y=(4, (A,))))
        agent.wait(2)
    named = [{kind: sorted(snapshot[kind]) for kind in (CLUSTER, ROUTES, SCOPES)} for snapshot in new.envoy.published]
    assert named[0] == {CLUSTER: ["x"], ROUTES: ["r"], SCOPES: ["r"]}
    # From then on clusters come first.
    assert [one[CLUSTER] for one in named] == [["x"], ["x", "y"], ["x", "y"]]
