"""Which changes need new instances, and when a failing instance is started again.

Decides the class of every property of a deployment document, the back-off between starts, and when
a deployment counts as failed. Must not know processes or routing.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from amphitrite.controlplane.core.desired.resources import Probe
from amphitrite.controlplane.core.observed.observations import Instance

#: A change to one of these makes another workload: new instances are ready before old ones stop.
REPLACES = frozenset({"environment", "environment_variables", "instance_type", "model"})

#: On a cluster a change to one of these does too, because a pod keeps them for its lifetime.
REPLACES_PODS = frozenset({"liveness_probe", "model_mount_path", "readiness_probe", "resources"})

#: A change to one of these applies to running instances, or to none. (On a cluster see above.)
IN_PLACE = frozenset(
    {
        "description",
        "instance_count",
        "liveness_probe",
        "properties",
        "readiness_probe",
        "request_settings",
        "scale_settings",
        "tags",
    }
)

#: A deployment is Failed once an instance has failed this often in a row. The first failure may be
#: a lost race for a port or for memory.
FAILURES_TO_FAIL = 2

#: An instance that has served for this many seconds ends a row of failures.
STABLE_S = 60.0

BACKOFF_FIRST_S, BACKOFF_MAX_S = 1.0, 300.0

#: The longest back-off after an instance that had served. Its model can be loaded, and what ended
#: it may have been one request: whoever sends such requests must not keep a deployment down.
BACKOFF_SERVED_MAX_S = 4.0

#: An instance that is not ready after this many seconds is stopped, unless its readiness probe
#: allows more.
LOAD_DEADLINE_S = 600.0

#: Exited instances kept for each slot: enough to reach the maximum back-off.
KEPT_EXITED = 10


def backoff_s(failures: int) -> float:
    """Seconds between an exit and the next start: 0, 1, 2, 4, ... 300 after 0, 1, 2, 3, ...
    failures."""
    if failures <= 0:
        return 0.0
    return min(BACKOFF_FIRST_S * 2.0 ** (failures - 1), BACKOFF_MAX_S)


def load_deadline_s(readiness: Probe) -> float:
    """Seconds that loading may take: LOAD_DEADLINE_S, or what the readiness probe allows if that is
    more."""
    return max(LOAD_DEADLINE_S, float(readiness.initial_delay + readiness.period * readiness.failure_threshold))


def overdue(instance: Instance, deadline_s: float, now: float) -> bool:
    """Whether it did not become ready within ``deadline_s``, or had not when it exited."""
    return instance.ready_at is None and (instance.exited_at or now) - instance.started_at >= deadline_s


def failed(instance: Instance, deadline_s: float) -> bool:
    """Whether it exited by itself, failed its liveness probe or was overdue."""
    if instance.phase != "exited":
        return False
    return not instance.requested_stop or not instance.live or overdue(instance, deadline_s, instance.started_at)


def stable(instance: Instance, now: float) -> bool:
    """Whether it has served for STABLE_S."""
    if instance.ready_at is None:
        return False
    return (instance.exited_at or now) - instance.ready_at >= STABLE_S


def failures_in_a_row(slot: Sequence[Instance], deadline_s: float, now: float, since: float = 0.0) -> int:
    """The failures since ``since`` (seconds since the epoch) and since the last stable attempt.

    ``slot``: all attempts of one slot, in any order.
    """
    return len(_row_of_failures(slot, deadline_s, now, since))


def restart_delay_s(slot: Sequence[Instance], deadline_s: float, now: float, since: float = 0.0) -> float:
    """Seconds between the last exit and the next start. Only failures to become ready, since an
    attempt that did, make it longer than BACKOFF_SERVED_MAX_S. For the arguments see
    :func:`failures_in_a_row`."""
    row = _row_of_failures(slot, deadline_s, now, since)
    unready = len(list(takewhile(lambda instance: instance.ready_at is None, row)))
    return max(backoff_s(unready), min(backoff_s(len(row)), BACKOFF_SERVED_MAX_S))


def _row_of_failures(slot: Sequence[Instance], deadline_s: float, now: float, since: float) -> list[Instance]:
    """The newest first."""
    row: list[Instance] = []
    for instance in sorted(slot, key=lambda i: i.attempt, reverse=True):
        if stable(instance, now) or (instance.exited_at is not None and instance.exited_at <= since):
            break
        if failed(instance, deadline_s):
            row.append(instance)
    return row
