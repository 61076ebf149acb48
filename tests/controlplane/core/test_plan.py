"""The plan, row by row: a world, what runs in it, what the proxies have, and the whole decision."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from amphitrite.controlplane.core.desired.resources import DEFAULT_READINESS_PROBE
from amphitrite.controlplane.core.observed.observations import AgentReport, Instance
from amphitrite.controlplane.core.observed.status import Ref, World
from amphitrite.controlplane.core.planning.memo import Memory
from amphitrite.controlplane.core.planning.plan import GRACE_S
from amphitrite.controlplane.core.planning.rollout import LOAD_DEADLINE_S, backoff_s
from amphitrite.dataplane.table.routing_table import RoutingTable

from .builders import NOW, agent, deployment, endpoint, instance, plan, table, workload, world

BLUE, BLUE2, GREEN = workload(), workload(version=2), workload("green")
B, E = Ref("ep", "blue"), Ref("ep")
LATE = instance(BLUE, phase="starting", started_at=NOW - LOAD_DEADLINE_S)
PATIENT = replace(DEFAULT_READINESS_PROBE, initial_delay=996)
OUT = {"start": (), "stop": (), "forget": (), "remove": ()}


@dataclass(frozen=True)
class Row:
    """``then``: ids by verb, and ``split`` and ``clusters`` of the table; ``status``: state and
    phase by resource."""

    name: str
    world: World
    instances: tuple[Instance, ...] = ()
    agents: tuple[AgentReport, ...] = (agent(),)
    then: dict[str, object] = field(default_factory=dict)
    status: dict[Ref, tuple[str, str]] = field(default_factory=dict)
    wake_at: float | None = None


def settled(*instances: Instance, split: tuple[tuple[str, int], ...] = (), count: int = 1) -> World:
    return world(
        deployment(done=True, count=count),
        endpoints=(endpoint(traffic=split),),
        published=table(*instances, split=split),
    )


def exited(*, slot: int = 0, attempt: int = 1, of: object = None, **more: object) -> Instance:
    return instance(BLUE if of is None else of, slot, attempt, "exited", **more)  # type: ignore[arg-type]


ROWS = [
    Row(
        "a new deployment is started in every slot",
        world(deployment(count=2), published=table()),
        then={"start": (f"{BLUE.name}-0-1", f"{BLUE.name}-1-1")},
        status={B: ("Creating", "Starting"), E: ("Succeeded", "Routing")},
    ),
    Row(
        "a starting instance is waited for, not routed",
        world(deployment(), published=table()),
        (instance(BLUE, phase="starting"),),
        then={"clusters": {}},
        status={B: ("Creating", "Loading")},
        wake_at=900 + LOAD_DEADLINE_S,
    ),
    Row(
        "it loads for too long: stopped, without any agent",
        world(deployment(), published=table()),
        (LATE,),
        (),
        then={"stop": (LATE.id,), "clusters": {}},
        status={B: ("Creating", "Loading")},
    ),
    Row(
        "its readiness probe allows it more",
        world(deployment(readiness_probe=PATIENT), published=table()),
        (LATE,),
        status={B: ("Creating", "Loading")},
        wake_at=LATE.started_at + 1000,
    ),
    Row(
        "its successor waits until the one that took too long is gone",
        world(deployment(), published=table()),
        (replace(LATE, phase="stopping", requested_stop=True),),
        status={B: ("Creating", "Starting")},
    ),
    Row(
        "stopped because it took too long: a failure",
        world(deployment(), published=table()),
        (replace(LATE, phase="exited", requested_stop=True, exited_at=NOW, reason=None),),
        status={B: ("Creating", "Retrying")},
        wake_at=NOW + 1,
    ),
    Row(
        "too long for the second time: Failed, and the old one serves on",
        world(deployment(version=2, ever_succeeded=True), published=table(instance(BLUE))),
        (instance(BLUE), exited(of=BLUE2), exited(of=BLUE2, attempt=2, requested_stop=True, started_at=NOW - 600)),
        then={"clusters": {BLUE.name: 1}},
        status={B: ("Failed", "Failed")},
        wake_at=NOW + backoff_s(2),
    ),
    Row(
        "ready: routed, but not done before the proxies say so",
        world(deployment(), published=table()),
        (instance(BLUE),),
        then={"clusters": {BLUE.name: 1}},
        status={B: ("Creating", "Routing")},
    ),
    Row(
        "published, not acknowledged",
        world(deployment(), published=table(instance(BLUE), version=2)),
        (instance(BLUE),),
        (agent(1),),
        status={B: ("Creating", "Routing")},
    ),
    Row(
        "acknowledged: done",
        world(deployment(), published=table(instance(BLUE))),
        (instance(BLUE),),
        status={B: ("Succeeded", "Ready")},
    ),
    Row(
        "two agents, one behind: not done",
        world(deployment(), published=table(instance(BLUE), version=2)),
        (instance(BLUE),),
        (agent(2), replace(agent(1), id="other")),
        status={B: ("Creating", "Routing")},
    ),
    Row(
        "a proxy refuses the table",
        world(deployment(), published=table(instance(BLUE), version=2)),
        (instance(BLUE),),
        (agent(1, rejected_version=2, error="bad route"),),
        status={B: ("Failed", "Failed")},
    ),
    Row(
        "replacement: the new one starts, the old one stays routed and untouched",
        world(
            deployment(version=2, ever_succeeded=True),
            published=table(instance(BLUE), split=(("blue", 100),)),
            endpoints=(endpoint(traffic=(("blue", 100),)),),
        ),
        (instance(BLUE),),
        then={"start": (f"{BLUE2.name}-0-1",), "clusters": {BLUE.name: 1}, "split": (("blue", 100),)},
        status={B: ("Updating", "Starting")},
    ),
    Row(
        "replacement: two wanted, one ready: the old one stays routed",
        world(deployment(version=2, count=2, ever_succeeded=True), published=table(instance(BLUE))),
        (instance(BLUE), instance(BLUE2), instance(BLUE2, 1, phase="starting")),
        then={"clusters": {BLUE.name: 1}},
        status={B: ("Updating", "Loading")},
        wake_at=900 + LOAD_DEADLINE_S,
    ),
    Row(
        "replacement: ready, so the route moves, and the old one is still not stopped",
        world(deployment(version=2, ever_succeeded=True), published=table(instance(BLUE))),
        (instance(BLUE), instance(BLUE2)),
        then={"clusters": {BLUE2.name: 1}},
        status={B: ("Updating", "Routing")},
    ),
    Row(
        "replacement: published and acknowledged, not drained: not stopped",
        world(deployment(version=2, ever_succeeded=True), published=table(instance(BLUE2), version=5)),
        (instance(BLUE), instance(BLUE2)),
        (agent(5, drained=4),),
        status={B: ("Succeeded", "Ready")},
    ),
    Row(
        "replacement: drained: stopped",
        world(deployment(version=2, done=True), published=table(instance(BLUE2), version=5)),
        (instance(BLUE), instance(BLUE2)),
        (agent(5),),
        then={"stop": (f"{BLUE.name}-0-1",)},
    ),
    Row(
        "no live agent, no stop",
        world(deployment(version=2, done=True), published=table(instance(BLUE2), version=5)),
        (instance(BLUE), instance(BLUE2)),
        (),
    ),
    Row(
        "a stopped instance that exited is forgotten",
        world(deployment(version=2, done=True), published=table(instance(BLUE2))),
        (exited(requested_stop=True), instance(BLUE2)),
        then={"forget": (f"{BLUE.name}-0-1",)},
    ),
    Row(
        "replacement fails twice: Failed, the old one serves on",
        world(deployment(version=2, ever_succeeded=True), published=table(instance(BLUE))),
        (instance(BLUE), exited(of=BLUE2), exited(of=BLUE2, attempt=2)),
        then={"clusters": {BLUE.name: 1}},
        status={B: ("Failed", "Failed")},
        wake_at=NOW + backoff_s(2),
    ),
    Row(
        "one failure: tried again after a second",
        world(deployment(), published=table()),
        (exited(),),
        status={B: ("Creating", "Retrying")},
        wake_at=NOW + 1,
    ),
    Row(
        "the second has passed",
        world(deployment(), published=table()),
        (exited(exited_at=NOW - 1.5),),
        then={"start": (f"{BLUE.name}-0-2",)},
        status={B: ("Creating", "Starting")},
    ),
    Row(
        "asked for again after it failed: tried at once, and not Failed before it has failed anew",
        world(deployment(generation=2, changed_at=NOW), published=table()),
        (exited(), exited(attempt=2)),
        then={"start": (f"{BLUE.name}-0-3",)},
        status={B: ("Creating", "Starting")},
    ),
    Row(
        "a stable instance that crashed is started at once, the other serves on",
        settled(instance(BLUE), instance(BLUE, 1), count=2),
        (exited(ready_at=901.0), instance(BLUE, 1)),
        then={"start": (f"{BLUE.name}-0-2",), "clusters": {BLUE.name: 1}},
        status={B: ("Succeeded", "Starting")},
    ),
    Row(
        "an instance that stopped answering is killed at once, without draining",
        settled(instance(BLUE)),
        (instance(BLUE, phase="unready", live=False),),
        (),
        then={"stop": (f"{BLUE.name}-0-1",), "clusters": {BLUE.name: 0}},
    ),
    Row(
        "its successor waits until it is gone",
        settled(instance(BLUE)),
        (instance(BLUE, phase="stopping", live=False),),
        then={"clusters": {BLUE.name: 0}},
    ),
    Row(
        "scale out",
        world(deployment(count=2, generation=2, done=True), published=table(instance(BLUE))),
        (instance(BLUE),),
        then={"start": (f"{BLUE.name}-1-1",), "clusters": {BLUE.name: 1}},
    ),
    Row(
        "scale out beside an instance that crashed twice and is back: not a failure of the new one",
        world(deployment(count=2, generation=2, done=True), published=table(instance(BLUE, 0, 3))),
        (exited(ready_at=901.0), exited(attempt=2, ready_at=NOW - 9), instance(BLUE, 0, 3, ready_at=NOW - 1)),
        then={"start": (f"{BLUE.name}-1-1",), "clusters": {BLUE.name: 1}},
        status={B: ("Scaling", "Starting")},
    ),
    Row(
        "scale in: first out of the table",
        settled(instance(BLUE), instance(BLUE, 1)),
        (instance(BLUE), instance(BLUE, 1)),
        then={"clusters": {BLUE.name: 1}},
    ),
    Row(
        "scale in: then stopped",
        settled(instance(BLUE)),
        (instance(BLUE), instance(BLUE, 1)),
        then={"stop": (f"{BLUE.name}-1-1",)},
        status={B: ("Succeeded", "Ready"), E: ("Succeeded", "Ready")},
    ),
    Row(
        "traffic waits for a deployment that is not ready",
        world(
            deployment(done=True),
            deployment("green"),
            endpoints=(endpoint(traffic=(("green", 100),), generation=2),),
            published=table(instance(BLUE), split=(("blue", 100),)),
        ),
        (instance(BLUE), instance(GREEN, phase="starting")),
        then={"split": (("blue", 100),)},
        status={E: ("Updating", "Waiting")},
        wake_at=900 + LOAD_DEADLINE_S,
    ),
    Row(
        "traffic to a deployment that failed: the change failed, the former split stays",
        world(
            deployment(done=True),
            deployment("green"),
            endpoints=(endpoint(traffic=(("green", 100),), generation=2),),
            published=table(instance(BLUE), split=(("blue", 100),)),
        ),
        (instance(BLUE), exited(of=GREEN), exited(of=GREEN, attempt=2)),
        then={"split": (("blue", 100),)},
        status={E: ("Failed", "Failed")},
        wake_at=NOW + backoff_s(2),
    ),
    Row(
        "a crashed deployment keeps its share: its requests are told 503, nobody else's",
        settled(instance(BLUE), split=(("blue", 100),)),
        (exited(ready_at=901.0),),
        then={"start": (f"{BLUE.name}-0-2",), "split": (("blue", 100),), "clusters": {BLUE.name: 0}},
    ),
    Row(
        "deleting: out of the table first",
        world(deployment(done=True, deleting=True), published=table(instance(BLUE))),
        (instance(BLUE),),
        then={"clusters": {}},
        status={B: ("Deleting", "Draining")},
    ),
    Row(
        "deleting: drained, stop",
        world(deployment(done=True, deleting=True), published=table()),
        (instance(BLUE),),
        then={"stop": (f"{BLUE.name}-0-1",)},
        status={B: ("Deleting", "Draining")},
    ),
    Row(
        "deleting: gone",
        world(deployment(done=True, deleting=True), published=table()),
        (exited(requested_stop=True),),
        then={"forget": (f"{BLUE.name}-0-1",), "remove": (B,)},
    ),
    Row(
        "a deleted endpoint waits for its deployments, and takes them along",
        world(deployment(done=True), endpoints=(endpoint(deleting=True),), published=RoutingTable(1)),
        (instance(BLUE, phase="stopping"),),
        status={B: ("Deleting", "Stopping"), E: ("Deleting", "Draining")},
    ),
    Row(
        "a deleted endpoint goes last",
        world(deployment(done=True), endpoints=(endpoint(deleting=True),), published=RoutingTable(1)),
        then={"remove": (B, E)},
    ),
    Row(
        "an instance of nothing that is known: stopped when drained",
        world(endpoints=(), published=RoutingTable(1)),
        (instance(BLUE),),
        then={"stop": (f"{BLUE.name}-0-1",)},
    ),
]


def test_what_is_remembered_of_any_world_changes_no_plan() -> None:
    memory = Memory()
    for now in (NOW, NOW + 90.0):
        for row in (*ROWS, *reversed(ROWS)):
            facts = row.world, row.instances, row.agents, now
            assert plan(*facts, memory=memory) == plan(*facts), row.name


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_plan(row: Row) -> None:
    decided = plan(row.world, row.instances, row.agents, NOW)
    route = next((r for r in decided.table.routes if r.name == "ep"), None)
    found: dict[str, object] = {
        "start": tuple(f"{s.workload.name}-{s.slot}-{s.attempt}" for s in decided.start),
        "stop": tuple(s.instance_id for s in decided.stop),
        "forget": decided.forget,
        "remove": decided.remove,
    }
    if "split" in row.then:
        found["split"] = route.split if route else None
    if "clusters" in row.then:
        found["clusters"] = {c.name: len(c.addresses) for c in decided.table.clusters}
    assert found == {**OUT, **row.then}
    told = {ref: (status.state, status.phase) for ref, status in decided.statuses}
    assert {ref: told.get(ref) for ref in row.status} == row.status
    assert decided.wake_at == row.wake_at


def test_a_liveness_kill_gets_no_grace_and_a_drained_stop_does() -> None:
    dead = plan(settled(instance(BLUE)), [instance(BLUE, live=False)], [], NOW)
    assert [s.grace_s for s in dead.stop] == [0.0]
    drained = plan(settled(instance(BLUE)), [instance(BLUE), instance(BLUE, 1)], [agent()], NOW)
    assert [s.grace_s for s in drained.stop] == [GRACE_S]


def test_the_second_attempt_says_why_the_first_one_failed() -> None:
    attempts = (exited(reason="cannot load"), instance(BLUE, 0, 2, "starting"))
    status = dict(plan(world(deployment(), published=table()), attempts, [agent()], NOW).statuses)[B]
    assert (status.state, status.phase) == ("Creating", "Loading")
    assert status.message == "cannot load\n0 of 1 instances ready"


def test_a_gpu_type_on_the_cpu_is_told_with_the_outcome() -> None:
    ready = instance(BLUE, note="Standard_NC6s_v3 runs on the CPU", engine="Triton")
    status = dict(plan(settled(ready), [ready], [agent()], NOW).statuses)[B]
    assert status.message == "1 instance ready; Standard_NC6s_v3 runs on the CPU"
    assert status.facts == {"ready_instances": 1, "engine": "Triton", "notes": ["Standard_NC6s_v3 runs on the CPU"]}


def test_the_failure_names_the_reason_and_the_command_that_shows_more() -> None:
    failing = (exited(reason="old"), exited(attempt=2, reason="failed to load 'm': no such file"))
    decided = plan(world(deployment(), published=table()), failing, [agent()], NOW)
    error = dict(decided.statuses)[B].error
    assert error is not None
    assert error.code == "ResourceNotReady"
    assert error.message == (
        "failed to load 'm': no such file\ndeployment 'blue' has an instance that does not become ready"
    )
    assert error.hint == "see its log: ml online-deployment get-logs -n blue -e ep"


def test_what_loads_for_too_long_is_told_how_to_get_more_time() -> None:
    late = replace(LATE, phase="exited", requested_stop=True, exited_at=NOW, reason=None)
    status = dict(plan(world(deployment(), published=table()), [late], [agent()], NOW).statuses)[B]
    assert "not ready 600 s after its start" in status.message
    assert "readiness_probe" in status.message
