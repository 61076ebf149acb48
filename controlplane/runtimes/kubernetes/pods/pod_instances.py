"""Instances from a workload's Deployment and its pods.

Decides, as a pure function without state, which pod has which slot and what it contributes:

* Pods that stay have the slots from 0: ready ones first, then the oldest. If the Deployment wants
  more pods than exist, the remaining slots are ``starting`` instances without a pod.
* Of the pods selected to stop, the surplus is ``stopping``, as are pods that the API server is
  deleting. They come after the others, so that nothing is started in the slots of pods that stay.
* Restarts of a container are exited attempts in the pod's slot.
* A Deployment that should have no pods is one ``stopping`` instance until it is gone.

Must not know the API server or desired state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from amphitrite.controlplane.core.desired.resources import WorkloadSpec
from amphitrite.controlplane.core.observed.observations import Fault, Instance, ModelFetch
from amphitrite.controlplane.runtimes.kubernetes.pods.container_exits import Exit, ended_count, exits, fetcher_message
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_facts import (
    Json,
    condition,
    created,
    is_finished,
    is_lost,
    is_ready,
    is_terminating,
    name,
    seconds,
    spec,
    state,
)
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_faults import deployment_fault, pod_fault, was_ready
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_history import PodHistory
from amphitrite.controlplane.runtimes.kubernetes.workloads import grants
from amphitrite.controlplane.runtimes.kubernetes.workloads.object_names import (
    FETCHER,
    NOTE_ANNOTATION,
    SERVER,
    STOPPING_ANNOTATION,
    grpc_port,
    http_port,
)
from amphitrite.dataplane.table.routing_table import Address

_FALLBACK_BUDGET_S = 600.0
#: Finished pods that are still reported: the newest, and one before.
_KEPT_OVER = 2


def instances(
    workload: WorkloadSpec,
    deployment: Json,
    pods: Sequence[Json],
    events: Mapping[str, Sequence[Json]],
    history: PodHistory,
    now: float,
) -> tuple[Instance, ...]:
    """``pods``: all pods of this workload. ``events``: by pod uid. ``now``: seconds since the
    epoch."""
    going = ending_pods(deployment, pods, now)
    gone = {name(pod) for pod in going}
    living = sorted(
        (p for p in pods if name(p) not in gone and not is_terminating(p) and not is_finished(p)),
        key=lambda p: (not is_ready(p), created(p), name(p)),
    )
    result: list[Instance] = []
    for slot, pod in enumerate(living):
        pod_events = events.get(pod["metadata"]["uid"], ())
        ended = exits(pod, pod_events, history, _budget_s(pod))
        result += [_exited(workload, pod, slot, one) for one in ended]
        result.append(_living(workload, pod, slot, pod_fault(pod, pod_events, ended, history, now), history))
    wanted = replicas(deployment)
    refused = deployment_fault(deployment)
    missing = range(len(living), wanted)
    result += [_pending(workload, deployment, slot, refused) for slot in missing]
    behind = max(len(living), wanted)
    result += [_stopping(workload, pod, behind + i) for i, pod in enumerate(going)]
    over = sorted((p for p in pods if is_finished(p)), key=created, reverse=True)[:_KEPT_OVER]
    result += [_finished_pod(workload, pod, max(behind - 1, 0), -i) for i, pod in enumerate(over)]
    if is_ending(deployment) and all(one.phase == "exited" for one in result):
        result.append(_ending_deployment(workload, deployment))
    if grants.place(deployment) == "template":
        result = [replace(one, grant_ends=False) for one in result]
    return tuple(sorted(result, key=lambda one: one.id))


def replicas(deployment: Json) -> int:
    return int(deployment["spec"].get("replicas", 1))


def pods_to_stop(deployment: Json) -> list[str]:
    """Names of the pods that were selected to stop."""
    text = (deployment["metadata"].get("annotations") or {}).get(STOPPING_ANNOTATION, "")
    return [one for one in text.split(",") if one]


def chosen_by_another(before: Json, now: Json, pod: str) -> bool:
    """Whether another control plane has selected ``pod`` since the Deployment was as ``before``.

    A pod that was already selected, and stayed because the controller deleted another, is selected
    again unless there is one replica less.
    """
    return pod in pods_to_stop(now) and (pod not in pods_to_stop(before) or replicas(now) < replicas(before))


def is_ending(deployment: Json) -> bool:
    """Whether it was scaled down to zero or deleted. Without replicas and without pods ever
    selected to stop, it is still being created."""
    chosen = STOPPING_ANNOTATION in (deployment["metadata"].get("annotations") or {})
    return bool(deployment["metadata"].get("deletionTimestamp")) or (replicas(deployment) == 0 and chosen)


def ending_pods(deployment: Json, pods: Sequence[Json], now: float) -> list[Json]:
    """The pods that are stopping: those that the API server deletes, and of the selected ones the
    surplus.

    The controller may prefer another pod, one that is not ready: then a selected pod stays.
    """
    ended = [pod for pod in pods if is_terminating(pod) and not is_lost(pod, now)]
    living = [pod for pod in pods if not is_terminating(pod) and not is_finished(pod)]
    names = pods_to_stop(deployment)
    chosen = sorted((p for p in living if name(p) in names), key=lambda p: names.index(name(p)))
    return [*chosen[: max(0, len(living) - replicas(deployment))], *ended]


def _living(workload: WorkloadSpec, pod: Json, slot: int, fault: Fault | None, history: PodHistory) -> Instance:
    running = state(pod, SERVER, "running") or {}
    turned = seconds(condition(pod, "Ready").get("lastTransitionTime"))
    ready_at = None
    if is_ready(pod):
        ready_at = turned
    elif was_ready(pod):
        ready_at = history.ready_at.get(_container_id(pod)) or seconds(running.get("startedAt"))
    return Instance(
        id=name(pod),
        workload=workload,
        slot=slot,
        attempt=ended_count(pod, FETCHER) + ended_count(pod, SERVER) + 1,
        phase="ready" if is_ready(pod) else "unready" if ready_at is not None else "starting",
        address=_address(workload, pod),
        started_at=seconds(running.get("startedAt")) or created(pod),
        ready_at=ready_at,
        engine=_engine(workload, pod),
        note=(pod["metadata"].get("annotations") or {}).get(NOTE_ANNOTATION),
        fault=fault,
        model_fetch=_model_fetch(pod),
    )


def _exited(workload: WorkloadSpec, pod: Json, slot: int, ended: Exit) -> Instance:
    return Instance(
        id=f"{name(pod)}#{ended.attempt}",
        workload=workload,
        slot=slot,
        attempt=ended.attempt,
        phase="exited",
        address=None,
        started_at=ended.started_at,
        ready_at=ended.ready_at,
        exited_at=ended.ended_at,
        exit_code=ended.exit_code,
        reason=ended.reason,
    )


def _stopping(workload: WorkloadSpec, pod: Json, slot: int) -> Instance:
    running = state(pod, SERVER, "running") or {}
    turned = seconds(condition(pod, "Ready").get("lastTransitionTime")) if is_ready(pod) else None
    started = seconds(running.get("startedAt")) or created(pod)
    return Instance(
        id=name(pod),
        workload=workload,
        slot=slot,
        attempt=1,
        phase="stopping",
        address=_address(workload, pod),
        started_at=started,
        ready_at=turned,
        requested_stop=True,
        engine=_engine(workload, pod),
    )


def _finished_pod(workload: WorkloadSpec, pod: Json, slot: int, attempt: int) -> Instance:
    """An evicted pod, or one rejected by its node: a record in the last slot, where its replacement
    is."""
    pod_status: Mapping[str, Any] = pod.get("status", {})
    ended = seconds(condition(pod, "Ready").get("lastTransitionTime")) or created(pod)
    words = (
        ": ".join(str(pod_status[part]) for part in ("reason", "message") if pod_status.get(part))
        or "the pod has finished"
    )
    return Instance(
        id=f"{name(pod)}#0",
        workload=workload,
        slot=slot,
        attempt=attempt,
        phase="exited",
        address=None,
        started_at=created(pod),
        exited_at=ended,
        reason=f"the node stopped the pod: {words}",
    )


def _pending(workload: WorkloadSpec, deployment: Json, slot: int, fault: Fault | None) -> Instance:
    """A pod that the Deployment's controller has not created yet."""
    return Instance(
        id=f"{name(deployment)}-pending-{slot}",
        workload=workload,
        slot=slot,
        attempt=1,
        phase="starting",
        address=None,
        started_at=created(deployment),
        fault=fault,
    )


def _ending_deployment(workload: WorkloadSpec, deployment: Json) -> Instance:
    return Instance(
        id=f"{name(deployment)}-ending",
        workload=workload,
        slot=0,
        attempt=1,
        phase="stopping",
        address=None,
        started_at=created(deployment),
        requested_stop=True,
    )


def _address(workload: WorkloadSpec, pod: Json) -> Address | None:
    address = pod.get("status", {}).get("podIP")
    return Address(str(address), http_port(workload), grpc_port(workload)) if address else None


def _engine(workload: WorkloadSpec, pod: Json) -> str | None:
    """From the image, because asking the server would need network access to the pod."""
    image = str(spec(pod, SERVER).get("image", "")).rpartition("/")[2]
    if not image or not state(pod, SERVER, "running"):
        return None
    container = workload.container
    return f"Triton of {image}" if container is None or container.repository is not None else f"container of {image}"


def _container_id(pod: Json) -> str:
    statuses = pod.get("status", {}).get("containerStatuses") or ()
    return next((str(one.get("containerID")) for one in statuses if one["name"] == SERVER), "")


def _model_fetch(pod: Json) -> ModelFetch | None:
    report = fetcher_message(state(pod, FETCHER, "terminated") or {}) or {}
    if report.get("cache") not in ("hit", "miss"):
        return None
    return ModelFetch(report["cache"] == "hit", int(report.get("bytes", 0)), float(report.get("seconds", 0.0)))


def _budget_s(pod: Json) -> float:
    probe = spec(pod, SERVER).get("startupProbe")
    if not probe:
        return _FALLBACK_BUDGET_S
    delay = int(probe.get("initialDelaySeconds", 0))
    return float(delay + int(probe.get("periodSeconds", 10)) * int(probe.get("failureThreshold", 3)))
