"""What must happen beside the verbs: ends of crashed containers' logs, Kubernetes events for faults, Deployments whose
last pod is gone.

Decides what of it is due, and does it in a thread of its own, so that nobody waits for it. Any control plane may do it,
several at a time: each step names what it saw, or what it makes, so that the second one changes nothing. Must not know
plans.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import Any

from amphitrite.controlplane.core.observed.observations import Instance
from amphitrite.controlplane.runtimes.kubernetes.client.api_client import Cluster
from amphitrite.controlplane.runtimes.kubernetes.client.api_paths import path
from amphitrite.controlplane.runtimes.kubernetes.pods.container_exits import exit_code, terminated
from amphitrite.controlplane.runtimes.kubernetes.pods.object_cache import Objects, Snapshot
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_facts import Json, created, is_lost, is_over, name, state
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

#: A Deployment that nobody has scaled for so long after it was made was left by a control plane that died just then.
_HALF_MADE_S = 60.0
#: Looked at this often without a change: for what becomes due by time alone.
_RESYNC_S = 5.0
_MESSAGE_MAX = 1000


class Chores:
    """``observe``: the instances as they are. ``clock``: seconds since the epoch."""

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        objects: Objects,
        writer: Writer,
        observe: Callable[[], tuple[Instance, ...]],
        clock: Callable[[], float],
    ) -> None:
        self._cluster, self._namespace, self._objects, self._writer = cluster, namespace, objects, writer
        self._observe, self._clock = observe, clock
        self._failed: dict[str, str] = {}
        self._told: set[str] = set()
        self._read: set[str] = set()
        self._wake, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="kubernetes chores", daemon=True)
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
            for chore in (self._tidy, self._read_logs, self._tell):
                try:
                    chore(self._objects.snapshot())
                    self._failed.pop(chore.__name__, None)
                except Error as error:
                    if self._failed.get(chore.__name__) != error.message:
                        log.warning("on the cluster: %s", error.message)
                    self._failed[chore.__name__] = error.message

    def _tidy(self, now: Snapshot) -> None:
        for deployment in done(now, self._clock()):
            log.info("delete %s: its last pod is gone", name(deployment))
            self._writer.delete(deployment)

    def _read_logs(self, now: Snapshot) -> None:
        found = list(crashed(now))
        for pod, container, container_id, previous in found:
            if container_id in self._read:
                continue
            self._read.add(container_id)
            try:
                text = crash_log(self._cluster, self._namespace, pod, container, previous=previous)
            except Error as error:
                log.info("no log of the crashed %s of %s: %s", container, pod, error.message)
                continue
            self._objects.add_log(container_id, text)
        self._read &= {container_id for _, _, container_id, _ in found}

    def _tell(self, now: Snapshot) -> None:
        """An event of the Deployment for each fault. Its name is made of what it says: it is told once."""
        names = set()
        for instance in self._observe():
            deployment = now.deployments.get(object_name(instance.workload))
            if instance.fault is None or deployment is None:
                continue
            event = fault_event(deployment, instance.fault.code, instance.fault.message, self._clock())
            names.add(name(event))
            if name(event) in self._told:
                continue
            try:
                self._cluster.create(path("Event", self._namespace), event, FIELD_MANAGER)
            except Error as error:
                if error.code != "Conflict":
                    raise
            self._told.add(name(event))
        self._told &= names


def done(now: Snapshot, at: float) -> Iterator[Json]:
    """Deployments that were scaled to nothing and have no pod left, or that were never finished. A pod that has ended
    for good is a record, which its controller leaves until the Deployment goes."""
    for label, deployment in now.deployments.items():
        if replicas(deployment) or deployment["metadata"].get("deletionTimestamp"):
            continue
        empty = all(is_over(pod) or is_lost(pod, at) for pod in now.pods.get(label, ()))
        if empty and (is_ending(deployment) or at - created(deployment) > _HALF_MADE_S):
            yield deployment


def crashed(now: Snapshot) -> Iterator[tuple[str, str, str, bool]]:
    """(pod, container, container id, previous) of each ended container that failed and may tell why."""
    for pods in now.pods.values():
        for pod in pods:
            for container in (FETCHER, SERVER):
                told = terminated(pod, container)
                if told and told.get("containerID") and exit_code(told.get("exitCode")) not in (0, None):
                    previous = state(pod, container, "terminated") is None
                    yield name(pod), container, str(told["containerID"]), previous


def fault_event(deployment: Json, code: str, message: str, at: float) -> dict[str, Any]:
    """As ``kubectl describe deployment`` shows it."""
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
