"""Facts from one pod's JSON: the states of its containers, conditions and times.

Decides where each of them is in a pod. Must not know what follows from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from amphitrite.controlplane.runtimes.kubernetes.workloads.object_names import FETCHER

Json = Mapping[str, Any]


def seconds(timestamp: str | None) -> float | None:
    """An RFC 3339 timestamp as seconds since the epoch."""
    return datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp() if timestamp else None


def created(obj: Json) -> float:
    return seconds(obj["metadata"].get("creationTimestamp")) or 0.0


def name(obj: Json) -> str:
    return str(obj["metadata"]["name"])


def status(pod: Json, container: str) -> Json:
    """The status of a container; empty until the kubelet reports one."""
    part = "initContainerStatuses" if container == FETCHER else "containerStatuses"
    statuses = (one for one in pod.get("status", {}).get(part) or () if one["name"] == container)
    return next(statuses, {})


def state(pod: Json, container: str, kind: str, *, last: bool = False) -> Json | None:
    """``running``, ``waiting`` or ``terminated`` of the current container, or with ``last`` of the
    previous one."""
    obj: Json | None = (status(pod, container).get("lastState" if last else "state") or {}).get(kind)
    return obj


def condition(obj: Json, kind: str) -> Json:
    conditions = obj.get("status", {}).get("conditions") or ()
    return next((one for one in conditions if one["type"] == kind), {})


def is_ready(pod: Json) -> bool:
    return condition(pod, "Ready").get("status") == "True"


def is_finished(pod: Json) -> bool:
    """Whether it has ended for good, such as an evicted pod, which its controller has replaced."""
    return pod.get("status", {}).get("phase") in ("Failed", "Succeeded") and not is_terminating(pod)


def is_terminating(pod: Json) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))


#: A pod that still exists this many seconds after its deletion was due is on a node that does not
#: answer.
_LOST_S = 60.0


def is_lost(pod: Json, now: float) -> bool:
    """Whether its deletion is overdue, so its state is unknown. ``deletionTimestamp`` includes the
    grace period."""
    due = seconds(pod["metadata"].get("deletionTimestamp"))
    return due is not None and now > due + _LOST_S


def spec(pod: Json, container: str) -> Json:
    part = "initContainers" if container == FETCHER else "containers"
    return next((one for one in pod["spec"].get(part) or () if one["name"] == container), {})
