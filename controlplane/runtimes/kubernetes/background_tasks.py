"""Background tasks of the Kubernetes runtime: logs of crashed containers, events for faults,
Deployments without pods, grants that are about to end, and what earlier releases have left in
objects.

Decides what is due, and does it in its own thread, so that nobody waits for it. Several control
planes may do it at the same time: each step names the version that it saw or the object that it
creates, so a second execution changes nothing. Must not know plans.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import Any

from amphitrite.controlplane.core.desired.resources import WorkloadSpec
from amphitrite.controlplane.core.observed.observations import Instance
from amphitrite.controlplane.runtimes.kubernetes.client.api_client import Cluster
from amphitrite.controlplane.runtimes.kubernetes.client.api_paths import path
from amphitrite.controlplane.runtimes.kubernetes.pods.container_exits import exit_code, terminated
from amphitrite.controlplane.runtimes.kubernetes.pods.object_cache import ObjectCache, Snapshot
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_facts import Json, created, is_finished, is_lost, name, state
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_instances import is_ending, replicas
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_logs import crash_log
from amphitrite.controlplane.runtimes.kubernetes.workload_writer import Writer
from amphitrite.controlplane.runtimes.kubernetes.workloads.object_names import (
    FETCHER,
    FIELD_MANAGER,
    SERVER,
    object_name,
)
from amphitrite.schemas.errors import Error

log = logging.getLogger(__name__)

#: A Deployment that was not scaled within this many seconds of its creation was abandoned by a
#: control plane that died.
_ABANDONED_S = 60.0
#: Seconds between runs without a change, for what becomes due by time alone.
_RESYNC_S = 5.0
#: Seconds between two looks for grants that are about to end, which have days left then.
_RENEW_S = 60.0
_MESSAGE_MAX = 1000


class BackgroundTasks:
    """``observe``: returns the current instances. ``workload``: returns that of a Deployment, None
    for a foreign one. ``clock``: seconds since the epoch."""

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        objects: ObjectCache,
        writer: Writer,
        observe: Callable[[], tuple[Instance, ...]],
        workload: Callable[[Json], WorkloadSpec | None],
        clock: Callable[[], float],
    ) -> None:
        self._cluster, self._namespace, self._objects, self._writer = cluster, namespace, objects, writer
        self._observe, self._workload, self._clock = observe, workload, clock
        self._renew_at = 0.0
        self._failed: dict[str, str] = {}
        self._posted: set[str] = set()
        self._logs_read: set[str] = set()
        self._wake, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="kubernetes background", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        self._wake.set()

    def close(self) -> None:
        self._stop.set()
        self._wake.set()
        self._thread.join(5.0)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._wake.wait(_RESYNC_S)
            self._wake.clear()
            if self._stop.is_set() or not self._objects.complete:
                continue
            for task in (
                self._delete_finished,
                self._redact,
                self._renew_grants,
                self._read_logs,
                self._post_events,
            ):
                try:
                    task(self._objects.snapshot())
                    self._failed.pop(task.__name__, None)
                except Error as error:
                    if self._failed.get(task.__name__) != error.message:
                        log.warning("background task failed: %s", error.message)
                    self._failed[task.__name__] = error.message
                except Exception:
                    log.exception("background task %s failed; the next attempt is in %g s", task.__name__, _RESYNC_S)

    def _delete_finished(self, now: Snapshot) -> None:
        for deployment in finished_deployments(now, self._clock()):
            log.info("deleting Deployment %s: it has no pods left", name(deployment))
            self._writer.delete(deployment)

    def _redact(self, now: Snapshot) -> None:
        for deployment in now.deployments.values():
            self._writer.redact(deployment)

    def _renew_grants(self, now: Snapshot) -> None:
        if self._clock() < self._renew_at:
            return
        for deployment in now.deployments.values():
            workload = self._workload(deployment)
            if workload is not None:
                self._writer.renew_grant(deployment, workload)
        self._renew_at = self._clock() + _RENEW_S

    def _read_logs(self, now: Snapshot) -> None:
        failed = list(failed_containers(now))
        for pod, container, container_id, previous in failed:
            if container_id in self._logs_read:
                continue
            self._logs_read.add(container_id)
            try:
                text = crash_log(self._cluster, self._namespace, pod, container, previous=previous)
            except Error as error:
                log.info("cannot read the log of crashed container %s of pod %s: %s", container, pod, error.message)
                continue
            self._objects.add_log(container_id, text)
        self._logs_read &= {container_id for _, _, container_id, _ in failed}

    def _post_events(self, now: Snapshot) -> None:
        """Posts one event for each fault, on the Deployment. Its name is a hash of its text, so it
        is posted once."""
        names = set()
        for instance in self._observe():
            deployment = now.deployments.get(object_name(instance.workload))
            if instance.fault is None or deployment is None:
                continue
            event = fault_event(deployment, instance.fault.code, instance.fault.message, self._clock())
            names.add(name(event))
            if name(event) in self._posted:
                continue
            try:
                self._cluster.create(path("Event", self._namespace), event, FIELD_MANAGER)
            except Error as error:
                if error.code != "Conflict":
                    raise
            self._posted.add(name(event))
        self._posted &= names


def finished_deployments(now: Snapshot, at: float) -> Iterator[Json]:
    """Deployments that were scaled to zero and have no pods left, or that were abandoned during
    creation. A finished pod is only a record, which its controller keeps until the Deployment is
    deleted."""
    for label, deployment in now.deployments.items():
        if replicas(deployment) or deployment["metadata"].get("deletionTimestamp"):
            continue
        empty = all(is_finished(pod) or is_lost(pod, at) for pod in now.pods.get(label, ()))
        if empty and (is_ending(deployment) or at - created(deployment) > _ABANDONED_S):
            yield deployment


def failed_containers(now: Snapshot) -> Iterator[tuple[str, str, str, bool]]:
    """(pod, container, container id, previous) of each container that has failed and may have a
    log."""
    for pods in now.pods.values():
        for pod in pods:
            for container in (FETCHER, SERVER):
                ended = terminated(pod, container)
                if ended and ended.get("containerID") and exit_code(ended.get("exitCode")) not in (0, None):
                    previous = state(pod, container, "terminated") is None
                    yield name(pod), container, str(ended["containerID"]), previous


def fault_event(deployment: Json, code: str, message: str, at: float) -> dict[str, Any]:
    """An event as ``kubectl describe deployment`` shows it."""
    time = datetime.fromtimestamp(int(at), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    metadata = deployment["metadata"]
    digest = hashlib.sha256(f"{metadata['uid']} {code} {message}".encode()).hexdigest()[:16]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{metadata['name']}.{digest}", "namespace": metadata["namespace"]},
        "involvedObject": {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata["uid"],
        },
        "reason": code,
        "message": message[:_MESSAGE_MAX],
        "type": "Warning",
        "count": 1,
        "firstTimestamp": time,
        "lastTimestamp": time,
        "source": {"component": "amphitrite"},
        "reportingComponent": "amphitrite",
        "reportingInstance": "",
    }
