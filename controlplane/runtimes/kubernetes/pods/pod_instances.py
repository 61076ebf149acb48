"""From a workload's Deployment and its pods to instances.

Decides, purely and without a memory of its own, which pod has which slot and what it contributes:

* pods that go on living have the slots from 0, ready ones first, then the oldest; where the Deployment wants more pods
  than there are, the slots behind are ``starting`` instances without a pod;
* of the pods that were chosen to go, as many as there are too many are ``stopping``, and so are those that the API
  server is ending; they come behind the others, so that nobody starts anything in the slots of those that stay;
* a container's restarts are ended attempts of the pod's slot;
* a Deployment that is to have no pods is one ``stopping`` instance until it is gone itself.

Must not know the API server, nor what is wanted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from amphitrite.controlplane.core.desired.resources import WorkloadSpec
from amphitrite.controlplane.core.observed.observations import Fault, Instance, ModelFetch
from amphitrite.controlplane.runtimes.kubernetes.pods.container_exits import Exit, ended_count, exits, fetcher_words
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_facts import (
    Json,
    condition,
    created,
    is_leaving,
    is_lost,
    is_over,
    is_ready,
    name,
    seconds,
    spec,
    state,
)
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_faults import deployment_fault, pod_fault, was_ready
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_history import Seen
from amphitrite.controlplane.runtimes.kubernetes.workloads.object_names import (
    FETCHER,
    SERVER,
    STOPPING_ANNOTATION,
    grpc_port,
    http_port,
)
from amphitrite.dataplane.table.routing_table import Address

_FALLBACK_BUDGET_S = 600.0
#: Pods that ended for good and still tell something: the newest, and one before.
_KEPT_OVER = 2


def instances(
    workload: WorkloadSpec,
    deployment: Json,
    pods: Sequence[Json],
    events: Mapping[str, Sequence[Json]],
    seen: Seen,
    now: float,
) -> tuple[Instance, ...]:
    """``pods``: all of this workload. ``events``: by pod uid. ``now``: seconds since the epoch."""
    going = leaving(deployment, pods, now)
    gone = {name(pod) for pod in going}
    living = sorted(
        (p for p in pods if name(p) not in gone and not is_leaving(p) and not is_over(p)),
        key=lambda p: (not is_ready(p), created(p), name(p)),
    )
    found: list[Instance] = []
    for slot, pod in enumerate(living):
        told = events.get(pod["metadata"]["uid"], ())
        ended = exits(pod, told, seen, _budget_s(pod))
        found += [_exited(workload, pod, slot, one) for one in ended]
        found.append(_living(workload, pod, slot, pod_fault(pod, told, ended, seen, now), seen))
    wanted = replicas(deployment)
    refused = deployment_fault(deployment)
    missing = range(len(living), wanted)
    found += [_pending(workload, deployment, slot, refused) for slot in missing]
    behind = max(len(living), wanted)
    found += [_stopping(workload, pod, behind + i) for i, pod in enumerate(going)]
    over = sorted((p for p in pods if is_over(p)), key=created, reverse=True)[:_KEPT_OVER]
    found += [_over(workload, pod, max(behind - 1, 0), -i) for i, pod in enumerate(over)]
    if is_ending(deployment) and all(one.phase == "exited" for one in found):
        found.append(_ghost(workload, deployment))
    return tuple(sorted(found, key=lambda one: one.id))


def replicas(deployment: Json) -> int:
    return int(deployment["spec"].get("replicas", 1))


def listed(deployment: Json) -> list[str]:
    """Names of the pods that were chosen to go."""
    text = (deployment["metadata"].get("annotations") or {}).get(STOPPING_ANNOTATION, "")
    return [one for one in text.split(",") if one]


def chosen_since(seen: Json, now: Json, pod: str) -> bool:
    """Whether somebody else was faster to choose ``pod``, after the Deployment was as ``seen``. One that was chosen
    before, and stayed as the controller preferred another pod, is chosen again only where there is one less."""
    return pod in listed(now) and (pod not in listed(seen) or replicas(now) < replicas(seen))


def is_ending(deployment: Json) -> bool:
    """It was scaled down to nothing, or deleted. One without pods that were ever chosen to go is still being made."""
    chosen = STOPPING_ANNOTATION in (deployment["metadata"].get("annotations") or {})
    return bool(deployment["metadata"].get("deletionTimestamp")) or (replicas(deployment) == 0 and chosen)


def leaving(deployment: Json, pods: Sequence[Json], now: float) -> list[Json]:
    """The pods that are on their way out: those that the API server ends, and as many of the chosen ones as there are
    too many. The controller may prefer another pod, one that is not ready: then a chosen one stays after all."""
    ended = [pod for pod in pods if is_leaving(pod) and not is_lost(pod, now)]
    living = [pod for pod in pods if not is_leaving(pod) and not is_over(pod)]
    names = listed(deployment)
    chosen = sorted((p for p in living if name(p) in names), key=lambda p: names.index(name(p)))
    return [*chosen[: max(0, len(living) - replicas(deployment))], *ended]


def _living(workload: WorkloadSpec, pod: Json, slot: int, fault: Fault | None, seen: Seen) -> Instance:
    running = state(pod, SERVER, "running") or {}
    turned = seconds(condition(pod, "Ready").get("lastTransitionTime"))
    ready_at = None
    if is_ready(pod):
        ready_at = turned
    elif was_ready(pod):
        ready_at = seen.ready_at.get(_container_id(pod)) or seconds(running.get("startedAt"))
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


def _over(workload: WorkloadSpec, pod: Json, slot: int, attempt: int) -> Instance:
    """Evicted, or refused by its node: it stays as a record, in the last slot, where its successor is."""
    told: Mapping[str, Any] = pod.get("status", {})
    ended = seconds(condition(pod, "Ready").get("lastTransitionTime")) or created(pod)
    words = ": ".join(str(told[part]) for part in ("reason", "message") if told.get(part)) or "the pod has ended"
    return Instance(
        id=f"{name(pod)}#0",
        workload=workload,
        slot=slot,
        attempt=attempt,
        phase="exited",
        address=None,
        started_at=created(pod),
        exited_at=ended,
        reason=f"the node ended the pod: {words}",
    )


def _pending(workload: WorkloadSpec, deployment: Json, slot: int, fault: Fault | None) -> Instance:
    """A pod that the Deployment's controller has still to make."""
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


def _ghost(workload: WorkloadSpec, deployment: Json) -> Instance:
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
    """From the image that runs: asking the server would need a way from here to the pod."""
    image = str(spec(pod, SERVER).get("image", "")).rpartition("/")[2]
    if not image or not state(pod, SERVER, "running"):
        return None
    container = workload.container
    return f"Triton of {image}" if container is None or container.repository is not None else f"container of {image}"


def _container_id(pod: Json) -> str:
    statuses = pod.get("status", {}).get("containerStatuses") or ()
    return next((str(one.get("containerID")) for one in statuses if one["name"] == SERVER), "")


def _model_fetch(pod: Json) -> ModelFetch | None:
    words = fetcher_words(state(pod, FETCHER, "terminated") or {}) or {}
    if words.get("cache") not in ("hit", "miss"):
        return None
    return ModelFetch(words["cache"] == "hit", int(words.get("bytes", 0)), float(words.get("seconds", 0.0)))


def _budget_s(pod: Json) -> float:
    probe = spec(pod, SERVER).get("startupProbe")
    if not probe:
        return _FALLBACK_BUDGET_S
    delay = int(probe.get("initialDelaySeconds", 0))
    return float(delay + int(probe.get("periodSeconds", 10)) * int(probe.get("failureThreshold", 3)))
