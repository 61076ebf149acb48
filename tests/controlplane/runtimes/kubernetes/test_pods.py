"""Which pod has which slot, who is on the way out, and when nothing is left."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amphitrite.controlplane.runtimes.kubernetes.background_tasks import (
    failed_containers,
    fault_event,
    finished_deployments,
)
from amphitrite.controlplane.runtimes.kubernetes.pods.object_cache import Snapshot
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_instances import chosen_by_another

from .golden_inputs import CASES
from .recordings import Recording, a_deployment, a_pod, condition, recorded, stamp

NOW = 1_795_250_000.0


@dataclass(frozen=True)
class Row:
    """``want``: (id, slot, phase) sorted by id."""

    name: str
    deployment: dict[str, Any]
    pods: list[dict[str, Any]]
    want: list[tuple[str, int, str]]


DEPLOYMENT = recorded("ready").deployment["metadata"]["name"]
ROWS = (
    Row("being made", a_deployment(0), [], []),
    Row("no pod yet", a_deployment(2), [], [(f"{DEPLOYMENT}-pending-{n}", n, "starting") for n in (0, 1)]),
    Row(
        "ready ones first, then the oldest",
        a_deployment(4),
        [a_pod("a", ready=False), a_pod("b", created=5), a_pod("c", created=1)],
        [("a", 2, "starting"), ("b", 1, "ready"), ("c", 0, "ready"), (f"{DEPLOYMENT}-pending-3", 3, "starting")],
    ),
    Row(
        "scaled down, the chosen one not yet ended",
        a_deployment(1, "a"),
        [a_pod("a"), a_pod("b", created=5)],
        [("a", 1, "stopping"), ("b", 0, "ready")],
    ),
    Row(
        "scaled down, the controller preferred another one",
        a_deployment(1, "a"),
        [a_pod("a"), a_pod("b", created=5, leaving=True)],
        [("a", 0, "ready"), ("b", 1, "stopping")],
    ),
    Row(
        "one chosen too many stays",
        a_deployment(2, "a,b"),
        [a_pod("a"), a_pod("b"), a_pod("c")],
        [("a", 2, "stopping"), ("b", 0, "ready"), ("c", 1, "ready")],
    ),
    Row(
        "one is drained away and has a successor",
        a_deployment(1),
        [a_pod("a", leaving=True), a_pod("b", ready=False, created=9)],
        [("a", 1, "stopping"), ("b", 0, "starting")],
    ),
    Row("the last one is going", a_deployment(0, "a"), [a_pod("a", leaving=True)], [("a", 0, "stopping")]),
    Row("all are gone", a_deployment(0, "a"), [], [(f"{DEPLOYMENT}-ending", 0, "stopping")]),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_slots_and_phases(row: Row) -> None:
    found = Recording(row.deployment, row.pods, []).observed()
    assert [(one.id, one.slot, one.phase) for one in found] == sorted(row.want)


def test_the_workload_says_where_a_pod_is_asked() -> None:
    one = recorded("ready")
    triton = one.living().address
    own = replace(one, workload=CASES["own-container"].workload).living().address
    assert triton is not None and own is not None
    assert [(at.port, at.grpc_port) for at in (triton, own)] == [(8000, 8001), (8501, None)]


@pytest.mark.parametrize(
    ("seen", "now", "want"),
    [
        ((2, None), (2, None), False),
        ((2, None), (1, "a"), True),
        ((2, None), (1, "b"), False),
        ((1, "a"), (1, "a"), False),  # it stayed, and the Deployment's controller only wrote its status
        ((1, "a"), (0, "a"), True),
        ((2, None), (3, None), False),
    ],
)
def test_who_was_chosen_by_somebody_else(seen: tuple[int, str | None], now: tuple[int, str | None], want: bool) -> None:
    assert chosen_by_another(a_deployment(*seen), a_deployment(*now), "a") is want


def test_a_pod_that_should_long_be_gone_is_not_waited_for() -> None:
    """Its node does not answer: else nothing could ever be deleted."""
    lost = a_pod("a", leaving=True)
    deployment = a_deployment(0, "a")
    assert [i.id for i in Recording(deployment, [lost], []).observed(now=NOW + 9e6)] == [f"{DEPLOYMENT}-ending"]
    assert list(finished_deployments(Snapshot({DEPLOYMENT: deployment}, {DEPLOYMENT: (lost,)}), NOW + 9e6)) == [
        deployment
    ]
    assert list(finished_deployments(Snapshot({DEPLOYMENT: deployment}, {DEPLOYMENT: (lost,)}), NOW - 9e6)) == []


def test_an_evicted_pod_is_a_failed_attempt_of_its_successors_slot() -> None:
    evicted = a_pod("a")
    evicted["status"] |= {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}
    condition(evicted, "Ready").update(status="False", lastTransitionTime=stamp(30))
    found = Recording(a_deployment(1), [evicted, a_pod("b", ready=False, created=31)], []).observed()
    assert [(one.id, one.slot, one.attempt, one.phase) for one in found] == [
        ("a#0", 0, 0, "exited"),
        ("b", 0, 1, "starting"),
    ]
    assert found[0].reason == "the node stopped the pod: Evicted: The node was low on resource: memory."


def test_a_pod_that_has_ended_for_good_holds_up_no_deletion() -> None:
    """The ReplicaSet leaves it, whatever its number of pods; it goes with the Deployment, which is
    waited for."""
    evicted = a_pod("a")
    evicted["status"] |= {"phase": "Failed", "reason": "Evicted"}
    ending = a_deployment(0, "b")
    observed = Recording(ending, [evicted], []).observed()
    assert [(one.id, one.phase) for one in observed] == [("a#0", "exited"), (f"{DEPLOYMENT}-ending", "stopping")]
    assert list(finished_deployments(Snapshot({DEPLOYMENT: ending}, {DEPLOYMENT: (evicted,)}), NOW)) == [ending]
    assert list(finished_deployments(Snapshot({DEPLOYMENT: ending}, {DEPLOYMENT: (evicted, a_pod("b"))}), NOW)) == []


def test_what_is_done_is_deleted_and_what_nobody_finished_too() -> None:
    making, ended, running = a_deployment(0), a_deployment(0, ""), a_deployment(1)
    for deployment in (making, ended, running):
        deployment["metadata"]["creationTimestamp"] = stamp(0)
    for deployment, young, old in ((making, False, True), (ended, True, True), (running, False, False)):
        now = Snapshot({DEPLOYMENT: deployment})
        began = 1_795_248_000.0  # stamp(0)
        assert bool(list(finished_deployments(now, began + 10))) == young
        assert bool(list(finished_deployments(now, began + 100))) == old


def test_whose_log_is_read() -> None:
    crash, ready, grant = (recorded(name).pod for name in ("crash", "ready", "grant"))
    found = list(failed_containers(Snapshot({}, {"x": (crash, ready, grant)})))
    assert [(name, container) for name, container, _, _ in found] == [
        (crash["metadata"]["name"], "inference-server"),
        (grant["metadata"]["name"], "storage-initializer"),
    ]


def test_an_event_is_named_by_what_it_says() -> None:
    deployment = a_deployment(1)
    one, again = (fault_event(deployment, "PodUnschedulable", "no room", at) for at in (1.0, 2.0))
    other = fault_event(deployment, "PodUnschedulable", "no GPU", 1.0)
    assert one["metadata"]["name"] == again["metadata"]["name"] != other["metadata"]["name"]
    assert (one["reason"], one["message"], one["firstTimestamp"]) == (
        "PodUnschedulable",
        "no room",
        "1970-01-01T00:00:01Z",
    )


PODS = st.lists(st.tuples(st.booleans(), st.integers(0, 5), st.booleans()), max_size=6)


@given(PODS, st.integers(0, 6), st.sets(st.integers(0, 5)))
def test_every_pod_is_one_instance_and_every_slot_has_one(
    made: list[tuple[bool, int, bool]], replicas: int, chosen: set[int]
) -> None:
    pods = [a_pod(f"p{n}", ready=r, created=c, leaving=gone) for n, (r, c, gone) in enumerate(made)]
    deployment = a_deployment(replicas, ",".join(f"p{n}" for n in sorted(chosen)))
    found = [one for one in Recording(deployment, pods, []).observed(now=NOW - 9e6) if one.phase != "exited"]
    assert {pod["metadata"]["name"] for pod in pods} <= {one.id for one in found}
    staying = [one for one in found if one.phase != "stopping"]
    assert sorted(one.slot for one in found) == list(range(len(found)))
    assert sorted(one.slot for one in staying) == list(range(len(staying))), "those that stay come first"
    assert len(staying) >= replicas
