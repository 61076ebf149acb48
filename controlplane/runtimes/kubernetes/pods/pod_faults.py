"""Faults: what keeps a pod, or a Deployment without pods, from getting ready. Azure's code,
Kubernetes' text, and a hint.

Decides which state is a fault, and that its message stays the same while the fault lasts (no
counters, times or random names), because it becomes one status and one event. Must not know slots,
or how it is reported.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from amphitrite.controlplane.core.observed.observations import Fault
from amphitrite.controlplane.runtimes.kubernetes.pods.container_exits import Exit, event_time
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_facts import (
    Json,
    condition,
    created,
    is_ready,
    seconds,
    state,
)
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_history import PodHistory
from amphitrite.controlplane.runtimes.kubernetes.workloads.object_names import FETCHER, SERVER

_PULL = {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"}
_PULL |= {"RegistryUnavailable", "SignatureValidationFailed"}
_CONFIG = {"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PreStartHookError"}
#: Reported briefly while volumes are mounted; a fault only if it lasts longer.
_SETUP = {"FailedMount", "FailedAttachVolume", "FailedMapVolume", "FailedCreatePodSandBox"}
_SETUP_S = 10.0

_PREEMPTION = re.compile(r" (?:no new claims to deallocate, )?preemption: .*", re.DOTALL)
_BACK_OFF = re.compile(r'^Back-off pulling image "[^"]*"(?:: ErrImagePull: )?')
_POD_NAME = re.compile(r'^(?:Error creating: )?pods "[^"]+" is forbidden: ')
_LOG_PREFIX = re.compile(r"^(?:[EWIF]\d{4} \S+ +\d+ \S+\] |\S+Z [EWIF] \d+ \S+\] )")
_LAST_LINES, _LINE_MAX = 3, 200


def pod_fault(
    pod: Json, events: Sequence[Json], ended: Sequence[Exit], history: PodHistory, now: float
) -> Fault | None:
    """None for a pod that makes progress, or still has time to."""
    scheduled = condition(pod, "PodScheduled")
    if scheduled.get("status") == "False" and scheduled.get("reason") in ("Unschedulable", "SchedulerError"):
        return _unschedulable(pod, scheduled, history)
    for container in (FETCHER, SERVER):
        waiting = state(pod, container, "waiting")
        if waiting is not None and (fault := _waiting(pod, container, waiting)):
            return fault
    if looping := _looping(pod, ended):
        return crash(looping)
    if stuck := _stuck(pod, events, now):
        return stuck
    return _not_ready(pod, events)


def deployment_fault(deployment: Json) -> Fault | None:
    """Why the Deployment gets no pods at all, None if it does."""
    refused = condition(deployment, "ReplicaFailure")
    if refused.get("status") != "True":
        return None
    words = _POD_NAME.sub("", str(refused.get("message", ""))) or str(refused.get("reason", ""))
    since = seconds(refused.get("lastUpdateTime")) or 0.0
    if "exceeded quota" in words:
        hint = (
            "free some of the quota (delete a deployment, lower an instance_count), or request a larger ResourceQuota"
        )
        return Fault("OutOfQuota", f"no pod can be created: {words}", hint, since=since)
    hint = "change the deployment or its instance type to comply with the policies of the namespace"
    return Fault("InvalidDeploymentSpec", f"no pod can be created: {words}", hint, since=since)


def last_lines(log: str) -> list[str]:
    """The end of a log, without timestamps, process ids and lines without text."""
    lines = [_LOG_PREFIX.sub("", line).strip().strip('"') for line in log.splitlines()]
    lines_left = [line[:_LINE_MAX] for line in lines if any(c.isalnum() for c in line)]
    return lines_left[-_LAST_LINES:]


def _unschedulable(pod: Json, scheduled: Json, history: PodHistory) -> Fault:
    words = _PREEMPTION.sub("", str(scheduled.get("message", ""))).strip().rstrip(".")
    lacks_capacity = "Insufficient " in words or "Too many pods" in words
    if lacks_capacity:
        hint = (
            "free the missing resource or add nodes; "
            "the property amphitrite.capacity_policy decides what happens meanwhile"
        )
    elif "persistentvolumeclaim" in words or "PersistentVolume" in words:
        hint = "check the PersistentVolumeClaim of the model cache (ML_MODEL_CACHE)"
    else:
        hint = "compare the instance type's nodeSelector, tolerations and affinity with the nodes' labels and taints"
    first = seconds(scheduled.get("lastTransitionTime")) or created(pod)
    since = max(first, history.departed_at) if lacks_capacity else first
    return Fault(
        "PodUnschedulable", f"no node accepts the pod: {words}", hint, lacks_capacity=lacks_capacity, since=since
    )


def _looping(pod: Json, ended: Sequence[Exit]) -> Exit | None:
    """The last exit of a container that has exited twice and is not running.

    (CrashLoopBackOff may be reported a minute later; after the first exit the kubelet restarts it
    at once.)
    """
    if len(ended) < 2 or state(pod, ended[-1].container, "running") is not None:
        return None
    return ended[-1]


def _waiting(pod: Json, container: str, waiting: Json) -> Fault | None:
    reason, words = str(waiting.get("reason", "")), str(waiting.get("message") or "")
    if reason in _PULL:
        image = next((c["image"] for c in _containers(pod) if c["name"] == container), "")
        cause = _BACK_OFF.sub("", words) or reason
        hint = "check the image's name and that nodes can reach its registry; a private registry needs imagePullSecrets"
        return Fault("ImagePullLoopBackOff", f"the image {image} cannot be pulled: {cause}", hint)
    if reason in _CONFIG:
        hint = "fix what the message names, then apply again"
        return Fault("InvalidDeploymentSpec", f"container {container} cannot be created: {reason}: {words}", hint)
    return None


def crash(ended: Exit) -> Fault:
    """The fault of a container that keeps crashing, from its last exit."""
    if ended.out_of_memory:
        hint = "raise resources.requests.memory (the limit follows), or use an instance_type with more memory"
        return Fault("PodOutOfMemory", ended.reason or "out of memory", hint, since=ended.ended_at)
    reason = ended.reason or "it exited"
    if ended.container == FETCHER:
        hint = ended.hint or "see its log: ml online-deployment get-logs --container storage-initializer"
        return Fault("ResourceNotReady", reason, hint, since=ended.ended_at)
    lines = [line for line in last_lines(ended.log) if line not in reason]
    tail = f"; its log ends with: {' | '.join(lines)}" if lines else ""
    code = "" if ended.exit_code is None else f" (exit code {_kubectl_code(ended.exit_code)})"
    message = f"{reason}; {ended.container} keeps crashing{code}{tail}"
    hint = "see the log of the last attempt: ml online-deployment get-logs"
    return Fault("KubernetesCrashLoopBackOff", message, hint, since=ended.ended_at)


def _kubectl_code(code: int) -> int:
    """The exit code as kubectl shows it."""
    return 128 - code if code < 0 else code


def _stuck(pod: Json, events: Sequence[Json], now: float) -> Fault | None:
    """The fault of a scheduled pod whose volumes or network are not ready."""
    if pod.get("status", {}).get("phase") != "Pending" or now - created(pod) < _SETUP_S:
        return None
    if any(state(pod, c, kind) for c in (FETCHER, SERVER) for kind in ("running", "terminated")):
        return None
    setup_events = sorted((one for one in events if one.get("reason") in _SETUP), key=event_time)
    if not setup_events:
        return None
    words = " ".join(str(setup_events[-1].get("message", "")).split())
    hint = "check the volume or network that the message names; the kubelet keeps retrying"
    return Fault("ResourceNotReady", f"the pod cannot be set up: {setup_events[-1]['reason']}: {words}", hint)


def _not_ready(pod: Json, events: Sequence[Json]) -> Fault | None:
    """The fault of a pod that has served and whose readiness probe fails now."""
    if not was_ready(pod):
        return None
    unhealthy = [e for e in events if e.get("reason") == "Unhealthy" and str(e.get("message")).startswith("Readiness")]
    words = (
        " ".join(str(max(unhealthy, key=event_time)["message"]).split()) if unhealthy else "its readiness probe fails"
    )
    return Fault(
        "ResourceNotReady", f"it was ready and no longer is: {words}", "see its log: ml online-deployment get-logs"
    )


def was_ready(pod: Json) -> bool:
    """Whether its current container was ready and is not now: the Ready condition became false
    after it started."""
    running = state(pod, SERVER, "running")
    if running is None or is_ready(pod):
        return False
    turned = seconds(condition(pod, "Ready").get("lastTransitionTime"))
    return turned is not None and turned > (seconds(running.get("startedAt")) or 0.0)


def _containers(pod: Json) -> list[Json]:
    return [*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]]
