"""Which change needs new instances, and how patiently a failing instance is started again.

Decides the sets that every property of a deployment document is in, the back-off, and what counts as failing
over and over. Must not know instances' processes or routing.
"""

from __future__ import annotations

from collections.abc import Sequence

from amphitrite.controlplane.core.desired.resources import Probe
from amphitrite.controlplane.core.observed.observations import Instance

#: A change to one of these is another workload: new instances are ready before the old ones are touched.
REPLACES = frozenset({"environment", "environment_variables", "instance_type", "model"})

#: On a cluster so is a change to one of these: what a pod was made with stays as long as the pod.
REPLACES_PODS = frozenset({"liveness_probe", "model_mount_path", "readiness_probe", "resources"})

#: A change to one of these takes effect on the instances that run, or concerns none. (On a cluster see above.)
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

#: An instance that has not become ready after this long is given up, unless its readiness probe allows it more.
LOAD_DEADLINE_S = 600.0

#: Exited instances kept for each slot: enough to count the back-off up to its maximum.
KEPT_EXITED = 10


def backoff_s(failures: int) -> float:
    """Seconds between an exit and the next start after ``failures`` failures in a row: 0, 1, 2, 4, ... 300."""
    if failures <= 0:
        return 0.0
    return min(BACKOFF_FIRST_S * 2.0 ** (failures - 1), BACKOFF_MAX_S)


def load_deadline_s(readiness: Probe) -> float:
    """How long loading may take: LOAD_DEADLINE_S, or what the probe asks for if that is more."""
    return max(LOAD_DEADLINE_S, float(readiness.initial_delay + readiness.period * readiness.failure_threshold))


def overdue(instance: Instance, deadline_s: float, now: float) -> bool:
    """It has not become ready within ``deadline_s``, or had not when it ended."""
    return instance.ready_at is None and (instance.exited_at or now) - instance.started_at >= deadline_s


def failed(instance: Instance, deadline_s: float) -> bool:
    """It ended although nobody wanted it to, or because it no longer answered its liveness probe, or was overdue."""
    if instance.phase != "exited":
        return False
    return not instance.requested_stop or not instance.live or overdue(instance, deadline_s, instance.started_at)


def stable(instance: Instance, now: float) -> bool:
    """It has served for STABLE_S."""
    if instance.ready_at is None:
        return False
    return (instance.exited_at or now) - instance.ready_at >= STABLE_S


def failures_in_a_row(slot: Sequence[Instance], deadline_s: float, now: float, since: float = 0.0) -> int:
    """Failures after ``since`` and after the last stable attempt; ``slot``: all attempts of one slot in any order."""
    count = 0
    for instance in sorted(slot, key=lambda i: i.attempt, reverse=True):
        if stable(instance, now) or (instance.exited_at is not None and instance.exited_at <= since):
            break
        if failed(instance, deadline_s):
            count += 1
    return count
