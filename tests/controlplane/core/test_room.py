"""Who gives way to whom when new instances do not fit beside the old ones, and what the user reads
meanwhile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from amphitrite.controlplane.core.capacity import capacity_policy
from amphitrite.controlplane.core.desired.resources import Deployment
from amphitrite.controlplane.core.observed.observations import Fault, Instance, ModelFetch
from amphitrite.controlplane.core.observed.status import Ref, Status

from .builders import NOW, agent, deployment, endpoint, instance, plan, table, workload, world

OLD, NEW = workload(version=1), workload(version=2)
SCARCE = Fault(
    "PodUnschedulable", "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.", lacks_capacity=True, since=NOW
)
SETTLED = replace(SCARCE, since=NOW - capacity_policy.SCHEDULING_TIME_S)
BROKEN = Fault("ImagePullLoopBackOff", "image not found", hint="check the image")


def pending(slot: int = 0, fault: Fault = SETTLED) -> Instance:
    return instance(NEW, slot, phase="starting", fault=fault, address=None)


@pytest.mark.parametrize(
    ("policy", "new", "old", "leaves", "look_at"),
    [
        ("drain-first", [pending()], [instance(OLD, 0), instance(OLD, 1)], 1, None),
        ("drain-first", [pending()], [instance(OLD, 0)], 0, None),
        ("drain-first", [pending(fault=SCARCE)], [instance(OLD)], None, NOW + capacity_policy.SCHEDULING_TIME_S),
        ("drain-first", [pending()], [], None, None),
        ("drain-first", [instance(NEW, phase="starting")], [instance(OLD)], None, None),
        ("drain-first", [pending(), instance(NEW, 1, phase="starting")], [instance(OLD)], None, None),
        ("drain-first", [pending()], [instance(OLD), instance(OLD, 1, phase="stopping")], None, None),
        ("drain-first", [pending(), instance(NEW, 1)], [instance(OLD, 0), instance(OLD, 1)], 1, None),
        ("wait", [pending()], [instance(OLD)], None, None),
        ("refuse", [pending()], [instance(OLD)], None, None),
    ],
)
def test_who_gives_way(
    policy: Any, new: list[Instance], old: list[Instance], leaves: int | None, look_at: float | None
) -> None:
    chosen, due = capacity_policy.next_to_drain(policy, new, old, NOW)
    assert (chosen.slot if chosen else None, due) == (leaves, look_at)


@pytest.mark.parametrize(
    ("policy", "new_ready", "old_ready", "over"),
    [
        ("drain-first", 1, 3, False),
        ("drain-first", 2, 2, True),
        ("drain-first", 1, 0, True),
        ("drain-first", 0, 0, False),
        ("wait", 3, 1, False),
    ],
)
def test_when_the_new_ones_take_over(policy: Any, new_ready: int, old_ready: int, over: bool) -> None:
    assert capacity_policy.can_take_over(policy, new_ready, old_ready) is over


@pytest.mark.parametrize(
    ("policy", "count", "former", "text"),
    [
        ("wait", 1, 0, "1 instance waits for capacity: full"),
        (
            "wait", 2, 3,
            "2 instances wait for capacity: full; 3 previous instances keep serving until capacity is available",
        ),
        (
            "drain-first", 1, 1,
            "1 instance waits for capacity: full; the previous instance keeps serving and will be drained "
            "one by one to free capacity (drain-first); the deployment is unavailable in between",
        ),
    ],
)  # fmt: skip
def test_what_is_told(policy: Any, count: int, former: int, text: str) -> None:
    assert capacity_policy.capacity_message(policy, [replace(SCARCE, message="full")] * count, former) == text


def outcome(wanted: Deployment, *instances: Instance) -> Status:
    decided = plan(world(wanted, published=table()), instances, [agent()], NOW)
    return dict(decided.statuses)[Ref("ep", "blue")]


@pytest.mark.parametrize(
    ("policy", "fault", "state", "phase", "code"),
    [
        ("refuse", SCARCE, "Failed", "Failed", "PodUnschedulable"),
        ("wait", SCARCE, "Creating", "Waiting", None),
        ("drain-first", SCARCE, "Creating", "Waiting", None),
        ("wait", BROKEN, "Failed", "Failed", "ImagePullLoopBackOff"),
        ("refuse", BROKEN, "Failed", "Failed", "ImagePullLoopBackOff"),
    ],
)
def test_a_fault_becomes_the_outcome(policy: Any, fault: Fault, state: str, phase: str, code: str | None) -> None:
    """A policy that waits for room waits for nothing else."""
    wanted = deployment(version=2, capacity_policy=policy)
    status = outcome(wanted, pending(fault=fault))
    assert (status.state, status.phase, status.error and status.error.code) == (state, phase, code)
    assert fault.message in status.message


def test_a_faulty_instance_that_comes_up_after_all() -> None:
    broken = replace(pending(fault=BROKEN), attempt=3)
    assert outcome(deployment(version=2), broken).state == "Failed"
    came_up = instance(NEW, attempt=3)
    decided = plan(world(deployment(version=2), published=table(came_up)), [came_up], [agent()], NOW)
    assert dict(decided.statuses)[Ref("ep", "blue")].state == "Succeeded"


def test_how_the_model_came_is_told_when_all_are_ready() -> None:
    first = instance(NEW, model_fetch=ModelFetch(False, 5_100_052, 0.31))
    second = instance(NEW, 1, model_fetch=ModelFetch(True, 5_100_052, 0.01))
    wanted = deployment(version=2, count=2)
    decided = plan(world(wanted, published=table(first, second)), [first, second], [agent()], NOW)
    status = dict(decided.statuses)[Ref("ep", "blue")]
    assert status.message == (
        "2 instances ready; model downloaded by 1 instance: 4.9 MiB in 0.3 s; "
        "model found in the node's cache by 1 instance"
    )
    assert status.facts["model_fetches"][second.id]["cached"] is True


# -- computes that do not answer -------------------------------------------------------------------
def far(**more: Any) -> Deployment:
    one = deployment(**more)
    return replace(one, workload=replace(one.workload, compute="lab"))


def test_what_runs_out_of_sight_is_left_as_it_is() -> None:
    serving = instance(OLD)
    published = table(serving, split=(("blue", 100),))
    wanted = world(far(done=True, count=2), endpoints=(endpoint(traffic=(("blue", 100),)),), published=published)
    decided = plan(wanted, [], [agent()], NOW, frozenset({"lab"}))
    assert (decided.start, decided.stop, decided.remove, decided.statuses) == ((), (), (), ())
    assert decided.table == published


def test_a_withdrawn_key_opens_nothing_out_of_sight_either() -> None:
    published = table(instance(OLD))
    new_keys = endpoint().keys[:1]
    wanted = world(far(done=True), endpoints=(endpoint(keys=new_keys),), published=published)
    (route,) = plan(wanted, [], [agent()], NOW, frozenset({"lab"})).table.routes
    assert route.credentials == new_keys
    assert route.targets == published.routes[0].targets


def test_a_change_out_of_sight_says_that_it_waits_and_nothing_is_removed() -> None:
    leaving = far(deleting=True)
    wanted = world(leaving, endpoints=(endpoint(deleting=True),), published=table())
    decided = plan(wanted, [], [agent()], NOW, frozenset({"lab"}))
    assert decided.remove == ()
    status = dict(decided.statuses)[Ref("ep", "blue")]
    assert (status.state, status.phase) == ("Deleting", "Waiting")
    assert "lab" in status.message


def test_other_endpoints_go_on_meanwhile() -> None:
    here = replace(workload(endpoint="near"), compute="local")
    near = replace(deployment(endpoint="near"), workload=here)
    wanted = world(far(), near, endpoints=(endpoint(), endpoint("near")), published=table())
    decided = plan(wanted, [], [agent()], NOW, frozenset({"lab"}))
    assert [s.workload.endpoint for s in decided.start] == ["near"]
