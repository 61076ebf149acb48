"""Room: what becomes of a rollout when new instances do not fit beside the old ones.

Decides when old instances give way (``drain-first``), which, and what a user is told while an instance waits for room.
Must not know nodes or GPUs: that an instance lacks room is a fact its runtime reports (``Fault.scarce``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from amphitrite.controlplane.core.desired.resources import CapacityPolicy
from amphitrite.controlplane.core.observed.observations import Fault, Instance

#: Seconds that a scheduler gets to use room that was made before more is made. kube-scheduler tries a pod again at most
#: 10 s after something changed (podMaxBackoffSeconds).
SETTLE_S = 12.0


def waiting(instances: Iterable[Instance]) -> tuple[Fault, ...]:
    """The faults of those that only lack room."""
    found = (i.fault for i in instances if i.phase == "starting")
    return tuple(fault for fault in found if fault is not None and fault.scarce)


def give_way(
    policy: CapacityPolicy, new: Sequence[Instance], old: Sequence[Instance], now: float
) -> tuple[Instance | None, float | None]:
    """The old instance to take out of service now, and when to look again.

    One at a time, and only when the room made before has been used: nothing old is still ending, nothing new is still
    loading, and the scheduler has had SETTLE_S since anything left. The one of the highest slot goes, so that looking
    twice names the same one. ``new`` and ``old``: of the wanted workload and of the one it replaces.
    """
    scarce = waiting(new)
    if policy != "drain-first" or not scarce:
        return None, None
    if any(i.phase == "stopping" for i in old) or any(i.phase == "starting" and not _scarce(i) for i in new):
        return None, None
    living = [i for i in old if i.phase in ("starting", "ready", "unready")]
    if not living:
        return None, None
    due = max(fault.since for fault in scarce) + SETTLE_S
    if now < due:
        return None, due
    return max(living, key=lambda i: (i.slot, i.attempt, i.id)), None


def takes_over(policy: CapacityPolicy, new_ready: int, old_ready: int) -> bool:
    """Whether the new instances serve already before all of them are there: as many as there are old ones left."""
    return policy == "drain-first" and new_ready > 0 and new_ready >= old_ready


def told(policy: CapacityPolicy, scarce: Sequence[Fault], old_ready: int) -> str:
    """What a user reads while ``scarce`` instances wait; ``old_ready``: ready instances of the former workload."""
    count = "one instance waits" if len(scarce) == 1 else f"{len(scarce)} instances wait"
    what = f"{count} for room: {scarce[0].message}"
    if old_ready == 0:
        return what
    serving = "the former instance serves" if old_ready == 1 else f"the {old_ready} former instances serve"
    if policy == "drain-first":
        gap = "; nothing serves in between" if old_ready == 1 else ""
        return f"{what}; {serving} and will be drained one by one to make room (drain-first){gap}"
    return f"{what}; {serving} until there is room"


def _scarce(instance: Instance) -> bool:
    return instance.fault is not None and instance.fault.scarce
