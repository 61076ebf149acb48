"""The runtime for one cluster: watches for reading, pure mapping in between, requests for writing.

Decides what is watched and what each method of the protocol does here. Must not know plans, routing
or the store. ``observe`` answers from memory; methods that change something send requests to the
API server.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from amphitrite.controlplane.core.capacity.node_capacity import NodeCapacity
from amphitrite.controlplane.core.desired.compute_clusters import PodShape
from amphitrite.controlplane.core.desired.resources import Probe, WorkloadSpec
from amphitrite.controlplane.core.observed.observations import Instance
from amphitrite.controlplane.core.storage.garbage import StoredItem
from amphitrite.controlplane.runtimes.kubernetes.background_tasks import BackgroundTasks
from amphitrite.controlplane.runtimes.kubernetes.client.api_client import Cluster, PermissionDenied
from amphitrite.controlplane.runtimes.kubernetes.client.api_paths import path
from amphitrite.controlplane.runtimes.kubernetes.client.watches import Watch
from amphitrite.controlplane.runtimes.kubernetes.pods import node_facts, pod_logs
from amphitrite.controlplane.runtimes.kubernetes.pods.object_cache import ObjectCache, Snapshot
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_facts import Json, name
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_instances import instances
from amphitrite.controlplane.runtimes.kubernetes.workload_writer import Writer
from amphitrite.controlplane.runtimes.kubernetes.workloads import pod_resources
from amphitrite.controlplane.runtimes.kubernetes.workloads.object_names import SPEC_ANNOTATION, watch_selector
from amphitrite.controlplane.runtimes.kubernetes.workloads.pod_settings import KubernetesSettings
from amphitrite.controlplane.runtimes.kubernetes.workloads.workload_json import from_json
from amphitrite.controlplane.runtimes.log_text import previous_attempts, render
from amphitrite.controlplane.runtimes.runtime import LogQuery
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key


class KubernetesRuntime:
    """Implements ``runtimes.runtime.Runtime`` for one cluster. The constructor returns at once; see
    ``unknown``.

    ``compute``: the name by which workloads refer to this cluster. ``clock``: seconds since the
    epoch, close to the cluster's clock.
    """

    name = "kubernetes"

    def __init__(
        self, compute: str, cluster: Cluster, settings: KubernetesSettings, clock: Callable[[], float] = time.time
    ) -> None:
        self.compute, self._cluster, self._settings, self._clock = compute, cluster, settings, clock
        self._wakes: list[Callable[[], None]] = []
        self._specs: dict[str, tuple[str, WorkloadSpec | None]] = {}
        self._lock = threading.Lock()
        self._objects = ObjectCache(clock, self._notify)
        self._writer = Writer(cluster, settings, self._objects)
        self._background = BackgroundTasks(
            cluster, settings.namespace, self._objects, self._writer, self.observe, self._workload, clock
        )
        selector = watch_selector(settings.release)
        self._watches = [
            self._watch("Deployment", {"labelSelector": selector}, self._put("Deployment")),
            self._watch("Pod", {"labelSelector": selector}, self._put("Pod")),
            self._watch("Event", {"fieldSelector": "involvedObject.kind=Pod"}, self._put("Event")),
        ]

    # Methods of ``runtimes.runtime.Runtime``.
    def observe(self) -> tuple[Instance, ...]:
        observed = self._observed(self._objects.snapshot())
        return tuple(sorted((one for many in observed.values() for one in many), key=lambda one: one.id))

    def unknown(self) -> frozenset[str]:
        return frozenset() if self._objects.complete else frozenset({self.compute})

    def start(
        self,
        workload: WorkloadSpec,
        slot: int,
        attempt: int,
        readiness: Probe,
        liveness: Probe,
        request_timeout_s: float = 5.0,
    ) -> None:
        """``attempt`` and the probes are ignored: the kubelet restarts and probes, as the pod
        template says.

        Raises Error KubernetesUnaccessible, NamespaceNotFound, OutOfQuota, InvalidDeploymentSpec or
        BadArgument.
        """
        if not self._objects.complete:
            raise self.problem() or Error("KubernetesUnaccessible", f"compute {self.compute} has not answered yet")
        self._writer.ensure(workload, slot + 1, request_timeout_s)

    def stop(self, instance_id: str, grace_s: float) -> None:
        """``grace_s`` is ignored: the pod's own grace period is long enough for its requests."""
        now = self._objects.snapshot()
        for label, many in self._observed(now).items():
            for instance in many:
                if instance.id == instance_id and instance.phase not in ("stopping", "exited"):
                    pods = {name(pod) for pod in now.pods.get(label, ())}
                    self._writer.release(now.deployments[label], instance_id if instance_id in pods else None)
                    return

    def forget(self, instance_id: str) -> None:
        """Does nothing: records of exited containers belong to the pod."""

    def logs(self, endpoint: str, deployment: str, query: LogQuery) -> str:
        now = self._objects.snapshot()
        owner = (key(endpoint), key(deployment))
        entries = []
        for label, many in self._observed(now).items():
            mine = [i for i in many if (i.workload.endpoint, i.workload.deployment) == owner]
            if query.previous:
                mine = previous_attempts(mine, pod_logs.pod_of)
            pods = now.pods.get(label, ())
            entries += list(pod_logs.read(self._cluster, self._settings.namespace, mine, pods, query))
        return render(entries)

    def capacity(self, compute: str) -> tuple[NodeCapacity, ...] | None:
        """All nodes and the requests of their pods, None without permission to list them.

        Raises Error("KubernetesUnaccessible").
        """
        try:
            nodes = self._cluster.get("/api/v1/nodes", resourceVersion="0")["items"]
            pods = self._cluster.get("/api/v1/pods", resourceVersion="0")["items"]
        except PermissionDenied:
            return None
        return node_facts.capacities(nodes, pods)

    def demand(self, workload: WorkloadSpec, shape: PodShape) -> PodShape | None:
        return pod_resources.demand(shape, workload.pod, None)

    def stored(self) -> tuple[StoredItem, ...]:
        """Empty: pods and the nodes' caches are the cluster's."""
        return ()

    def discard(self, item: StoredItem) -> bool:
        """False: nothing is on this machine."""
        return False

    def watch(self, wake: Callable[[], None]) -> None:
        self._wakes.append(wake)

    def close(self) -> None:
        self._wakes.clear()
        self._background.close()
        for watch in self._watches:
            watch.close()
        self._cluster.close()

    # About the cluster.
    def problem(self) -> Error | None:
        """Why the cluster's state is out of date, None if it is not."""
        return next((watch.problem for watch in self._watches if watch.problem is not None), None)

    def _observed(self, now: Snapshot) -> dict[str, tuple[Instance, ...]]:
        """By the name of their Deployment."""
        if not self._objects.complete:
            return {}
        at = self._clock()
        result = {}
        for label, deployment in now.deployments.items():
            workload = self._workload(deployment)
            if workload is not None:
                result[label] = instances(workload, deployment, now.pods.get(label, ()), now.events, now.history, at)
        return result

    def _workload(self, deployment: Json) -> WorkloadSpec | None:
        """The workload of a Deployment; None if its annotation was changed and cannot be parsed."""
        text = (deployment["metadata"].get("annotations") or {}).get(SPEC_ANNOTATION, "")
        with self._lock:
            cached = self._specs.get(deployment["metadata"]["name"])
            if cached is None or cached[0] != text:
                try:
                    cached = (text, from_json(text))
                except ValueError:
                    cached = (text, None)
                self._specs[deployment["metadata"]["name"]] = cached
            return cached[1]

    def _watch(self, kind: str, query: dict[str, str], changed: Callable[[str, dict[str, Any]], None]) -> Watch:
        where = path(kind, self._settings.namespace)
        return Watch(self._cluster, where, query, lambda *listed: self._objects.replace(kind, *listed), changed)

    def _put(self, kind: str) -> Callable[[str, dict[str, Any]], None]:
        def changed(event: str, obj: dict[str, Any]) -> None:
            if event != "DELETED":
                self._objects.put(kind, obj)
                return
            self._objects.remove(kind, obj)

        return changed

    def _notify(self) -> None:
        self._background.wake()
        for wake in tuple(self._wakes):
            wake()
