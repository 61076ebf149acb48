"""Deployments without instances: how they fall asleep, are paused, and wake."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from amphitrite.controlplane.core.desired.resources import Deployment, Pause
from amphitrite.controlplane.core.desired.scale_settings import ScaleSettings
from amphitrite.controlplane.core.observed.observations import Instance
from amphitrite.controlplane.core.observed.status import Ref, Status
from amphitrite.controlplane.core.planning.plan import Plan
from amphitrite.dataplane.table.routing_table import Hold, Route, RoutingTable, Target

from .builders import KEYS, NOW, agent, deployment, endpoint, instance, plan, table, workload, world

BLUE = workload()
RUNNING = instance(BLUE)
B = Ref("ep", "blue")
MAY_SLEEP = ScaleSettings(min_instances=0)
AWAKE = deployment(done=True, scale_settings=MAY_SLEEP)
ASLEEP = replace(AWAKE, instance_count=0)
PAUSED = deployment(done=True, count=0, pause=Pause(3600.0, "ann"))
TRAFFIC = (("blue", 100),)


def at_rest(hold: Hold = "now", *, paused: bool = False, version: int = 1) -> RoutingTable:
    """What is published while nothing serves."""
    target = Target("blue", None, 5.0, "/v2/models/m/infer", per_instance=8, hold=hold, paused=paused)
    if hold == "now":
        target = replace(target, sample_every_s=1.0)
    return RoutingTable(version, (Route("ep", KEYS, (target,), TRAFFIC),))


@dataclass(frozen=True)
class Row:
    """``target``: cluster, hold and paused in the new table. ``verbs``: how many instances start
    and stop."""

    name: str
    wanted: Deployment
    published: RoutingTable
    target: tuple[str | None, Hold, bool]
    instances: tuple[Instance, ...] = ()
    drained: bool = True
    verbs: tuple[int, int] = (0, 0)
    status: tuple[str, str] = ("Succeeded", "Asleep")


SERVED = table(RUNNING, split=TRAFFIC)
FAILED = tuple(instance(BLUE, 0, attempt, "exited") for attempt in (1, 2))
ROWS = [
    Row("one that may sleep is ready to be held", AWAKE, SERVED, (BLUE.name, "ready", False), (RUNNING,),
        status=("Succeeded", "Routing")),
    Row("none is wanted: held, and nothing stops yet", ASLEEP, SERVED, (None, "now", False), (RUNNING,),
        status=("Succeeded", "Draining")),
    Row("held, but not drained", ASLEEP, at_rest(), (None, "now", False), (RUNNING,), drained=False,
        status=("Succeeded", "Draining")),
    Row("held and drained: stopped", ASLEEP, at_rest(), (None, "now", False), (RUNNING,), verbs=(0, 1),
        status=("Succeeded", "Draining")),
    Row("gone: asleep", ASLEEP, at_rest(), (None, "now", False)),
    Row("one is wanted before it has stopped: it serves again", AWAKE, at_rest(), (BLUE.name, "ready", False),
        (RUNNING,), status=("Succeeded", "Routing")),
    Row("wakes: started, and held", AWAKE, at_rest(), (None, "now", False), verbs=(1, 0),
        status=("Succeeded", "Starting")),
    Row("wakes: loading, and held", AWAKE, at_rest(), (None, "now", False), (instance(BLUE, phase="starting"),),
        status=("Succeeded", "Loading")),
    Row("it cannot wake: answered", AWAKE, at_rest(), (None, "ready", False), FAILED, status=("Failed", "Failed")),
    Row("its only instance is lost: held until the next one serves", AWAKE, SERVED, (None, "now", False),
        (instance(BLUE, phase="exited"),), status=("Succeeded", "Retrying")),
    Row("paused: not held, and nothing stops yet", PAUSED, SERVED, (None, "never", True), (RUNNING,),
        status=("Succeeded", "Draining")),
    Row("paused and drained: stopped", PAUSED, at_rest("never", paused=True), (None, "never", True), (RUNNING,),
        verbs=(0, 1), status=("Succeeded", "Draining")),
    Row("paused", PAUSED, at_rest("never", paused=True), (None, "never", True), status=("Succeeded", "Paused")),
    Row("paused while it slept", PAUSED, at_rest(), (None, "never", True), status=("Succeeded", "Routing")),
    Row("resumed: held", replace(PAUSED, instance_count=1, pause=None), at_rest("never", paused=True),
        (None, "now", False), verbs=(1, 0), status=("Succeeded", "Starting")),
    Row("resumed: serves, and is never held again", replace(PAUSED, instance_count=1, pause=None), at_rest(),
        (BLUE.name, "never", False), (RUNNING,), status=("Succeeded", "Routing")),
    Row("one that never served is not held", deployment(), RoutingTable(1), (None, "never", False),
        (instance(BLUE, phase="starting"),), status=("Creating", "Loading")),
]  # fmt: skip


def decided(row: Row) -> Plan:
    agents = (agent(1, drained=1 if row.drained else 0),)
    return plan(
        world(row.wanted, endpoints=(endpoint(traffic=TRAFFIC),), published=row.published), row.instances, agents, NOW
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_sleep(row: Row) -> None:
    made = decided(row)
    (route,) = made.table.routes
    (target,) = route.targets
    status = dict(made.statuses)[B]
    assert (target.cluster, target.hold, target.paused) == row.target
    assert (len(made.start), len([s for s in made.stop])) == row.verbs
    assert (status.state, status.phase) == row.status


def test_traffic_to_a_deployment_at_rest_takes_effect() -> None:
    for wanted, published in ((ASLEEP, at_rest()), (PAUSED, at_rest("never", paused=True))):
        made = plan(world(wanted, endpoints=(endpoint(traffic=TRAFFIC),), published=published), (), (agent(),), NOW)
        assert made.table.routes[0].split == TRAFFIC
        assert dict(made.statuses)[Ref("ep")].state == "Succeeded"


def test_the_status_says_who_paused_it() -> None:
    row = next(row for row in ROWS if row.name == "paused")
    status: Status = dict(decided(row).statuses)[B]
    assert status.message == "paused by ann at 01:00:00 UTC; requests are answered 503 until it is resumed"
    assert status.facts["paused"] == {"at": 3600.0, "by": "ann"}


@pytest.mark.parametrize("pause", [None, Pause(1.0)], ids=["sleep", "pause"])
def test_whatever_is_repeated_it_ends_at_rest_and_wakes_again(pause: Pause | None) -> None:
    """Each pass sees the table of the one before, as acknowledged or not, and what then runs."""
    published, instances = SERVED, {RUNNING.id: RUNNING}
    resting = replace(ASLEEP, pause=pause)
    stops_seen: list[int] = []
    for step in range(12):
        wanted = resting if step < 6 else AWAKE
        late = step % 2  # Every second pass comes before the agents' reports.
        reports = (agent(published.version - late),)
        made = plan(world(wanted, endpoints=(endpoint(traffic=TRAFFIC),), published=published),
                    tuple(instances.values()), reports, NOW)  # fmt: skip
        if not made.table.same_content(published):
            published = replace(made.table, version=published.version + 1)
        for stop in made.stop:
            assert not published.clusters
            stops_seen.append(step)
            del instances[stop.instance_id]
        for start in made.start:
            instances[RUNNING.id] = RUNNING
            assert start.workload == BLUE
        if step == 5:
            assert not instances and not published.clusters
    assert len(stops_seen) == 1
    assert published.routes[0].targets[0].cluster == BLUE.name
