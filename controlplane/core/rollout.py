"""Which change needs new instances, and how patiently a failing instance is started again.

Decides the two sets that every property of a deployment document is in, the back-off, and what counts as failing
over and over. Must not know instances' processes or routing.
"""

from __future__ import annotations

from collections.abc import Sequence

from amphitrite.controlplane.core.observed import Instance

#: A change to one of these is another workload: new instances are ready before the old ones are touched.
REPLACES = frozenset({"model", "instance_type", "environment_variables"})

#: A change to one of these takes effect on the instances that run, or concerns none.
IN_PLACE = frozenset(
    {
        "description",
        "instance_count",
        "liveness_probe",
        "properties",
        "readiness_probe",
        "request_settings",
        "tags",
    }
)

#: A deployment is Failed once an instance has failed this often in a row. Two, not one: a first failure may be a lost
#: race for a port or for memory.
FAILURES_TO_FAIL = 2

#: An instance that served this long ends a row of failures (seconds).
STABLE_S = 60.0

BACKOFF_FIRST_S, BACKOFF_MAX_S = 1.0, 300.0

#: Exited instances kept for each slot: enough to count the back-off up to its maximum.
KEPT_EXITED = 10


def backoff_s(failures: int) -> float:
    """Seconds between an exit and the next start after ``failures`` failures in a row: 0, 1, 2, 4, ... 300."""
    if failures <= 0:
        return 0.0
    return min(BACKOFF_FIRST_S * 2.0 ** (failures - 1), BACKOFF_MAX_S)


def failed(instance: Instance) -> bool:
    """It ended although nobody wanted it to, or because it no longer answered its liveness probe."""
    return instance.phase == "exited" and (not instance.requested_stop or not instance.live)


def stable(instance: Instance, now: float) -> bool:
    """It has served for STABLE_S."""
    if instance.ready_at is None:
        return False
    return (instance.exited_at or now) - instance.ready_at >= STABLE_S


def failures_in_a_row(slot: Sequence[Instance], now: float) -> int:
    """Failures since the last stable attempt; ``slot``: all attempts of one slot in any order."""
    count = 0
    for instance in sorted(slot, key=lambda i: i.attempt, reverse=True):
        if stable(instance, now):
            break
        if failed(instance):
            count += 1
    return count
