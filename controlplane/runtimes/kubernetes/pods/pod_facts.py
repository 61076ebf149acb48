"""Facts that are read off one pod's JSON: its containers' states, conditions and times.

Decides where in a pod each of them stands. Must not know what follows from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from amphitrite.controlplane.runtimes.kubernetes.workloads.object_names import FETCHER

Json = Mapping[str, Any]


def seconds(timestamp: str | None) -> float | None:
    """RFC 3339 to seconds since the epoch."""
    return datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp() if timestamp else None


def created(found: Json) -> float:
    return seconds(found["metadata"].get("creationTimestamp")) or 0.0


def name(found: Json) -> str:
    return str(found["metadata"]["name"])


def status(pod: Json, container: str) -> Json:
    """The status of a container; empty while the kubelet has told none."""
    part = "initContainerStatuses" if container == FETCHER else "containerStatuses"
    found = (one for one in pod.get("status", {}).get(part) or () if one["name"] == container)
    return next(found, {})


def state(pod: Json, container: str, kind: str, *, last: bool = False) -> Json | None:
    """``running``, ``waiting`` or ``terminated`` of the present container, or of the one before it."""
    found: Json | None = (status(pod, container).get("lastState" if last else "state") or {}).get(kind)
    return found


def condition(found: Json, kind: str) -> Json:
    conditions = found.get("status", {}).get("conditions") or ()
    return next((one for one in conditions if one["type"] == kind), {})


def is_ready(pod: Json) -> bool:
    return condition(pod, "Ready").get("status") == "True"


def is_over(pod: Json) -> bool:
    """It has ended for good, such as an evicted one, and its controller has put another in its place."""
    return pod.get("status", {}).get("phase") in ("Failed", "Succeeded") and not is_leaving(pod)


def is_leaving(pod: Json) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))


#: A pod that is still there so long after it should have been gone is on a node that nobody hears of.
_LOST_S = 60.0


def is_lost(pod: Json, now: float) -> bool:
    """It was to be gone, and nobody can tell whether it is. ``deletionTimestamp`` counts its grace in already."""
    due = seconds(pod["metadata"].get("deletionTimestamp"))
    return due is not None and now > due + _LOST_S


def spec(pod: Json, container: str) -> Json:
    part = "initContainers" if container == FETCHER else "containers"
    return next((one for one in pod["spec"].get(part) or () if one["name"] == container), {})
