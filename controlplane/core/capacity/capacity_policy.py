"""The capacity policy: what a rollout does if new instances do not fit beside the old ones.

Decides which old instance to drain and when (``drain-first``), when new instances take over, and
the message shown while instances wait for capacity. Must not know nodes or GPUs: the runtime
reports that an instance lacks capacity (``Fault.lacks_capacity``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from amphitrite.controlplane.core.desired.resources import CapacityPolicy
from amphitrite.controlplane.core.observed.observations import Fault, Instance

#: Seconds that the scheduler gets to use freed capacity before more is freed. kube-scheduler
#: retries a pod at most 10 s after a change (its setting podMaxBackoffSeconds).
SCHEDULING_TIME_S = 12.0


def capacity_faults(instances: Iterable[Instance]) -> tuple[Fault, ...]:
    """The faults of starting instances that only lack capacity."""
    faults = (i.fault for i in instances if i.phase == "starting")
    return tuple(fault for fault in faults if fault is not None and fault.lacks_capacity)


def next_to_drain(
    policy: CapacityPolicy, new: Sequence[Instance], old: Sequence[Instance], now: float
) -> tuple[Instance | None, float | None]:
    """The old instance to take out of service now, and when to decide again (seconds since the
    epoch).

    ``new`` and ``old`` are the instances of the wanted workload and of the one that it replaces.
    One instance is drained at a time, and only after the capacity freed before has been used: no
    old instance is stopping, no new one is loading, and the scheduler has had SCHEDULING_TIME_S
    since the last pod left. The instance with the highest slot is chosen, so repeated calls agree.
    """
    scarce = capacity_faults(new)
    if policy != "drain-first" or not scarce:
        return None, None
    if any(i.phase == "stopping" for i in old) or any(i.phase == "starting" and not _lacks_capacity(i) for i in new):
        return None, None
    living = [i for i in old if i.phase in ("starting", "ready", "unready")]
    if not living:
        return None, None
    due = max(fault.since for fault in scarce) + SCHEDULING_TIME_S
    if now < due:
        return None, due
    return max(living, key=lambda i: (i.slot, i.attempt, i.id)), None


def can_take_over(policy: CapacityPolicy, new_ready: int, old_ready: int) -> bool:
    """Whether the new instances may serve before all of them are ready.

    They may if at least as many are ready as old instances remain.
    """
    return policy == "drain-first" and new_ready > 0 and new_ready >= old_ready


def capacity_message(policy: CapacityPolicy, scarce: Sequence[Fault], old_ready: int) -> str:
    """The message for a user while instances wait for capacity.

    ``scarce``: the faults of the waiting instances. ``old_ready``: how many instances of the
    previous workload are ready.
    """
    count = "1 instance waits" if len(scarce) == 1 else f"{len(scarce)} instances wait"
    what = f"{count} for capacity: {scarce[0].message}"
    if old_ready == 0:
        return what
    serving = (
        "the previous instance keeps serving" if old_ready == 1 else f"{old_ready} previous instances keep serving"
    )
    if policy == "drain-first":
        gap = "; the deployment is unavailable in between" if old_ready == 1 else ""
        return f"{what}; {serving} and will be drained one by one to free capacity (drain-first){gap}"
    return f"{what}; {serving} until capacity is available"


def _lacks_capacity(instance: Instance) -> bool:
    return instance.fault is not None and instance.fault.lacks_capacity
