"""The runtime for one cluster: watches at one end, the pure mapping in the middle, requests at the other.

Decides what is watched and what each verb of the contract means here. Must not know plans, routing or the store.
``observe`` answers from memory; the verbs that change something are requests to the API server.
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
from amphitrite.controlplane.runtimes.kubernetes.background_tasks import Chores
from amphitrite.controlplane.runtimes.kubernetes.client.api_client import Cluster
from amphitrite.controlplane.runtimes.kubernetes.client.api_paths import path
from amphitrite.controlplane.runtimes.kubernetes.client.watches import Watch
from amphitrite.controlplane.runtimes.kubernetes.pods import node_facts, pod_logs
from amphitrite.controlplane.runtimes.kubernetes.pods.object_cache import Objects, Snapshot
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_facts import Json, name
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_instances import instances
from amphitrite.controlplane.runtimes.kubernetes.workload_writer import Writer
from amphitrite.controlplane.runtimes.kubernetes.workloads import pod_resources
from amphitrite.controlplane.runtimes.kubernetes.workloads.object_names import SPEC_ANNOTATION, watch_selector
from amphitrite.controlplane.runtimes.kubernetes.workloads.pod_settings import KubernetesSettings
from amphitrite.controlplane.runtimes.kubernetes.workloads.workload_json import from_json
from amphitrite.controlplane.runtimes.log_text import render
from amphitrite.controlplane.runtimes.runtime import Container
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key


class KubernetesRuntime:
    """``compute``: the name under which workloads choose this cluster. Returns at once; see ``unknown``.

    ``clock``: seconds since the epoch, close to the cluster's.
    """

    name = "kubernetes"

    def __init__(
        self, compute: str, cluster: Cluster, settings: KubernetesSettings, clock: Callable[[], float] = time.time
    ) -> None:
        self.compute, self._cluster, self._settings, self._clock = compute, cluster, settings, clock
        self._wakes: list[Callable[[], None]] = []
        self._specs: dict[str, tuple[str, WorkloadSpec | None]] = {}
        self._lock = threading.Lock()
        self._objects = Objects(clock, self._notify)
        self._writer = Writer(cluster, settings, self._objects)
        self._chores = Chores(cluster, settings.namespace, self._objects, self._writer, self.observe, clock)
        selector = watch_selector(settings.release)
        self._watches = [
            self._watch("Deployment", {"labelSelector": selector}, self._put("Deployment")),
            self._watch("Pod", {"labelSelector": selector}, self._put("Pod")),
            self._watch("Event", {"fieldSelector": "involvedObject.kind=Pod"}, self._put("Event")),
        ]

    # -- the contract -------------------------------------------------------------------------------------------------
    def observe(self) -> tuple[Instance, ...]:
        found = self._observed(self._objects.snapshot())
        return tuple(sorted((one for many in found.values() for one in many), key=lambda one: one.id))

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
        """``attempt`` and the probes say nothing here: the kubelet starts again and probes, as the workload has it.

        Raises Error: KubernetesUnaccessible, NamespaceNotFound, OutOfQuota, InvalidDeploymentSpec, BadArgument.
        """
        if not self._objects.complete:
            raise self.problem() or Error("KubernetesUnaccessible", f"compute {self.compute} has not answered yet")
        self._writer.ensure(workload, slot + 1, request_timeout_s)

    def stop(self, instance_id: str, grace_s: float) -> None:
        """The pod's own grace counts, which is long enough for its requests: ``grace_s`` says nothing here."""
        now = self._objects.snapshot()
        for label, many in self._observed(now).items():
            for instance in many:
                if instance.id == instance_id and instance.phase not in ("stopping", "exited"):
                    pods = {name(pod) for pod in now.pods.get(label, ())}
                    self._writer.release(now.deployments[label], instance_id if instance_id in pods else None)
                    return

    def forget(self, instance_id: str) -> None:
        """Nothing: records of what ended are the API server's, and go with the pod."""

    def logs(self, endpoint: str, deployment: str, tail: int, container: Container = "inference-server") -> str:
        now = self._objects.snapshot()
        wanted = (key(endpoint), key(deployment))
        entries = []
        for label, many in self._observed(now).items():
            mine = [i for i in many if (i.workload.endpoint, i.workload.deployment) == wanted]
            pods = now.pods.get(label, ())
            entries += list(pod_logs.read(self._cluster, self._settings.namespace, mine, pods, tail, container))
        return render(entries)

    def capacity(self, compute: str) -> tuple[NodeCapacity, ...] | None:
        """All nodes with what is asked of them; None where we may not see them. Raises Error otherwise."""
        try:
            found = self._cluster.get("/api/v1/nodes", resourceVersion="0")["items"]
            pods = self._cluster.get("/api/v1/pods", resourceVersion="0")["items"]
        except Error as error:
            if error.code == "KubernetesUnaccessible" and "does not let" in error.message:
                return None
            raise
        return node_facts.capacities(found, pods)

    def demand(self, workload: WorkloadSpec, shape: PodShape) -> PodShape | None:
        return pod_resources.demand(shape, workload.pod, None)

    def watch(self, wake: Callable[[], None]) -> None:
        self._wakes.append(wake)

    def close(self) -> None:
        self._wakes.clear()
        self._chores.close()
        for watch in self._watches:
            watch.close()
        self._cluster.close()

    # -- about the cluster --------------------------------------------------------------------------------------------
    def problem(self) -> Error | None:
        """Why the cluster's state cannot be followed at present; what is known of it is as old as that."""
        return next((watch.problem for watch in self._watches if watch.problem is not None), None)

    # -- inside -------------------------------------------------------------------------------------------------------
    def _observed(self, now: Snapshot) -> dict[str, tuple[Instance, ...]]:
        """By the name of their Deployment."""
        if not self._objects.complete:
            return {}
        at = self._clock()
        found = {}
        for label, deployment in now.deployments.items():
            workload = self._workload(deployment)
            if workload is not None:
                found[label] = instances(workload, deployment, now.pods.get(label, ()), now.events, now.seen, at)
        return found

    def _workload(self, deployment: Json) -> WorkloadSpec | None:
        """None for one whose annotation somebody has spoilt: it is nothing that we could know again."""
        text = (deployment["metadata"].get("annotations") or {}).get(SPEC_ANNOTATION, "")
        with self._lock:
            known = self._specs.get(deployment["metadata"]["name"])
            if known is None or known[0] != text:
                try:
                    known = (text, from_json(text))
                except ValueError:
                    known = (text, None)
                self._specs[deployment["metadata"]["name"]] = known
            return known[1]

    def _watch(self, kind: str, query: dict[str, str], changed: Callable[[str, dict[str, Any]], None]) -> Watch:
        where = path(kind, self._settings.namespace)
        return Watch(self._cluster, where, query, lambda *told: self._objects.replace(kind, *told), changed)

    def _put(self, kind: str) -> Callable[[str, dict[str, Any]], None]:
        def changed(event: str, found: dict[str, Any]) -> None:
            if event != "DELETED":
                self._objects.put(kind, found)
                return
            self._objects.remove(kind, found)

        return changed

    def _notify(self) -> None:
        self._chores.wake()
        for wake in tuple(self._wakes):
            wake()
