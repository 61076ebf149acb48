"""What keeps a pod, or a Deployment that gets no pod, from getting on: Azure's code, Kubernetes' own words, what to do.

Decides which state is a fault, and that its message stays the same as long as the fault does (no counters, no times,
no random names): it becomes a status and an event once. Must not know slots, nor how anybody is told.
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
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_history import Seen
from amphitrite.controlplane.runtimes.kubernetes.workloads.object_names import FETCHER, SERVER

_PULL = {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"}
_PULL |= {"RegistryUnavailable", "SignatureValidationFailed"}
_CONFIG = {"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PreStartHookError"}
#: Told in passing while volumes come up; a fault when it goes on for longer.
_SETUP = {"FailedMount", "FailedAttachVolume", "FailedMapVolume", "FailedCreatePodSandBox"}
_SETUP_S = 10.0

_PREEMPTION = re.compile(r" (?:no new claims to deallocate, )?preemption: .*", re.DOTALL)
_BACK_OFF = re.compile(r'^Back-off pulling image "[^"]*"(?:: ErrImagePull: )?')
_POD_NAME = re.compile(r'^(?:Error creating: )?pods "[^"]+" is forbidden: ')
_LOG_PREFIX = re.compile(r"^(?:[EWIF]\d{4} \S+ +\d+ \S+\] |\S+Z [EWIF] \d+ \S+\] )")
_LAST_LINES, _LINE_MAX = 3, 200


def pod_fault(pod: Json, events: Sequence[Json], ended: Sequence[Exit], seen: Seen, now: float) -> Fault | None:
    """None for a pod that gets on, or is given time to."""
    scheduled = condition(pod, "PodScheduled")
    if scheduled.get("status") == "False" and scheduled.get("reason") in ("Unschedulable", "SchedulerError"):
        return _unschedulable(pod, scheduled, seen)
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
    """Why it gets no pods at all."""
    refused = condition(deployment, "ReplicaFailure")
    if refused.get("status") != "True":
        return None
    words = _POD_NAME.sub("", str(refused.get("message", ""))) or str(refused.get("reason", ""))
    since = seconds(refused.get("lastUpdateTime")) or 0.0
    if "exceeded quota" in words:
        hint = "free some of it (delete a deployment, lower an instance_count), or ask for a larger ResourceQuota"
        return Fault("OutOfQuota", f"no pod may be made: {words}", hint, since=since)
    hint = "change the deployment or its instance type so that the namespace's rules allow it"
    return Fault("InvalidDeploymentSpec", f"no pod may be made: {words}", hint, since=since)


def last_lines(log: str) -> list[str]:
    """The end of a log without times and process numbers, lines that say nothing left out."""
    lines = [_LOG_PREFIX.sub("", line).strip().strip('"') for line in log.splitlines()]
    told = [line[:_LINE_MAX] for line in lines if any(c.isalnum() for c in line)]
    return told[-_LAST_LINES:]


def _unschedulable(pod: Json, scheduled: Json, seen: Seen) -> Fault:
    words = _PREEMPTION.sub("", str(scheduled.get("message", ""))).strip().rstrip(".")
    scarce = "Insufficient " in words or "Too many pods" in words
    if scarce:
        hint = "free what is missing or add nodes; `properties: amphitrite.capacity_policy` says what to do meanwhile"
    elif "persistentvolumeclaim" in words or "PersistentVolume" in words:
        hint = "see to the claim that the model cache names (ML_MODEL_CACHE)"
    else:
        hint = "compare the instance type's nodeSelector, tolerations and affinity with the nodes' labels and taints"
    first = seconds(scheduled.get("lastTransitionTime")) or created(pod)
    since = max(first, seen.departed_at) if scarce else first
    return Fault("PodUnschedulable", f"no node takes the pod: {words}", hint, lacks_capacity=scarce, since=since)


def _looping(pod: Json, ended: Sequence[Exit]) -> Exit | None:
    """It has ended twice, and the kubelet waits before it starts it again. (That the reason is CrashLoopBackOff may be
    told only a minute later; and the first time, it is started again at once.)"""
    if len(ended) < 2 or state(pod, ended[-1].container, "running") is not None:
        return None
    return ended[-1]


def _waiting(pod: Json, container: str, waiting: Json) -> Fault | None:
    reason, words = str(waiting.get("reason", "")), str(waiting.get("message") or "")
    if reason in _PULL:
        image = next((c["image"] for c in _containers(pod) if c["name"] == container), "")
        cause = _BACK_OFF.sub("", words) or reason
        hint = "check the image's name and that the nodes reach its registry; a private one needs imagePullSecrets"
        return Fault("ImagePullLoopBackOff", f"the image {image} cannot be pulled: {cause}", hint)
    if reason in _CONFIG:
        hint = "correct what the message names, then apply again"
        return Fault("InvalidDeploymentSpec", f"{container} cannot be made: {reason}: {words}", hint)
    return None


def crash(ended: Exit) -> Fault:
    """Why a container that ended again and again did so the last time."""
    if ended.out_of_memory:
        hint = "raise resources.requests.memory (the limit follows), or choose an instance_type with more memory"
        return Fault("PodOutOfMemory", ended.reason or "out of memory", hint, since=ended.ended_at)
    reason = ended.reason or "it ended"
    if ended.container == FETCHER:
        hint = ended.hint or "ml online-deployment get-logs --container storage-initializer shows what it did"
        return Fault("ResourceNotReady", reason, hint, since=ended.ended_at)
    lines = [line for line in last_lines(ended.log) if line not in reason]
    tail = f"; its log ends: {' | '.join(lines)}" if lines else ""
    code = "" if ended.exit_code is None else f" (exit code {_shown(ended.exit_code)})"
    message = f"{ended.container} ends again and again{code}: {reason}{tail}"
    hint = "ml online-deployment get-logs shows the whole log of the last attempt"
    return Fault("KubernetesCrashLoopBackOff", message, hint, since=ended.ended_at)


def _shown(code: int) -> int:
    """As kubectl shows it."""
    return 128 - code if code < 0 else code


def _stuck(pod: Json, events: Sequence[Json], now: float) -> Fault | None:
    """Scheduled, but its volumes or its network do not come up."""
    if pod.get("status", {}).get("phase") != "Pending" or now - created(pod) < _SETUP_S:
        return None
    if any(state(pod, c, kind) for c in (FETCHER, SERVER) for kind in ("running", "terminated")):
        return None
    told = sorted((one for one in events if one.get("reason") in _SETUP), key=event_time)
    if not told:
        return None
    words = " ".join(str(told[-1].get("message", "")).split())
    hint = "see to the volume or the network that the message names; the kubelet tries again by itself"
    return Fault("ResourceNotReady", f"the pod cannot be set up: {told[-1]['reason']}: {words}", hint)


def _not_ready(pod: Json, events: Sequence[Json]) -> Fault | None:
    """It served, and its readiness probe fails now."""
    if not was_ready(pod):
        return None
    told = [e for e in events if e.get("reason") == "Unhealthy" and str(e.get("message")).startswith("Readiness")]
    words = " ".join(str(max(told, key=event_time)["message"]).split()) if told else "its readiness probe fails"
    return Fault("ResourceNotReady", f"it served and does no longer: {words}", "its log tells what it is doing")


def was_ready(pod: Json) -> bool:
    """Its present container was ready and is not now. The Ready condition turned false after the container began."""
    running = state(pod, SERVER, "running")
    if running is None or is_ready(pod):
        return False
    turned = seconds(condition(pod, "Ready").get("lastTransitionTime"))
    return turned is not None and turned > (seconds(running.get("startedAt")) or 0.0)


def _containers(pod: Json) -> list[Json]:
    return [*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]]
