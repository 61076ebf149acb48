"""The changes to a workload's objects: make them, scale, choose who goes, delete.

Decides the order of the requests, so that a control plane that dies between any two leaves what the next one goes on
with, and that two of them cannot both count. Must not know when to do what, nor instances.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from amphitrite.controlplane.core.desired.resources import WorkloadSpec
from amphitrite.controlplane.runtimes.kubernetes.client.api_client import Cluster
from amphitrite.controlplane.runtimes.kubernetes.client.api_paths import path
from amphitrite.controlplane.runtimes.kubernetes.pods.object_cache import Objects
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_facts import Json, name
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_instances import chosen_since, is_ending, listed, replicas
from amphitrite.controlplane.runtimes.kubernetes.workloads import workload_manifests
from amphitrite.controlplane.runtimes.kubernetes.workloads.object_names import (
    DELETION_COST,
    FIELD_MANAGER,
    SCALE_FIELD_MANAGER,
    STOPPING_ANNOTATION,
    object_name,
)
from amphitrite.controlplane.runtimes.kubernetes.workloads.pod_settings import KubernetesSettings
from amphitrite.schemas.errors import Error

#: Others change a Deployment too (its controller writes the status): then it is read again.
_ATTEMPTS = 8
#: A ReplicaSet ends pods of a lower cost first.
_GOES_FIRST = "-1000"


class Writer:
    """Raises Error as ``Cluster`` does. What the API server answers is known to ``objects`` at once."""

    def __init__(self, cluster: Cluster, settings: KubernetesSettings, objects: Objects) -> None:
        self._cluster, self._settings, self._objects = cluster, settings, objects

    def ensure(self, workload: WorkloadSpec, count: int, request_timeout_s: float) -> None:
        """At least ``count`` pods; nothing while the Deployment is on its way out."""
        found = self._objects.deployment(object_name(workload)) or self._make(workload, request_timeout_s)
        if is_ending(found) or replicas(found) >= count:
            return
        if replicas(found) == 0:
            for one in workload_manifests.companions(workload, self._settings, found["metadata"]["uid"]):
                self._apply(one)
        if count > 1:
            self._apply(workload_manifests.disruption_budget(workload, self._settings, found["metadata"]["uid"]))

        def more(now: Json) -> dict[str, Any] | None:
            return None if is_ending(now) or replicas(now) >= count else {"spec": {"replicas": count}}

        self._change(found, more)

    def release(self, deployment: Json, pod: str | None) -> None:
        """One pod less: the named one, or any that there is not yet."""
        if pod is not None and replicas(deployment) > 1:
            cost = {"metadata": {"annotations": {DELETION_COST: _GOES_FIRST}}}
            try:
                self._cluster.patch(path("Pod", self._settings.namespace, pod), cost, SCALE_FIELD_MANAGER)
            except Error as error:
                if error.code != "ResourceNotFound":
                    raise

        def less(now: Json) -> dict[str, Any] | None:
            if replicas(now) == 0 or (pod is not None and chosen_since(deployment, now, pod)):
                return None
            chosen = [one for one in listed(now) if one in self._pod_names()]
            chosen = [*(one for one in chosen if one != pod), *([pod] if pod else [])]
            annotations = {STOPPING_ANNOTATION: ",".join(chosen)}
            return {"metadata": {"annotations": annotations}, "spec": {"replicas": replicas(now) - 1}}

        left = self._change(deployment, less)
        if left is not None and replicas(left) <= 1:
            self._cluster.delete(path("PodDisruptionBudget", self._settings.namespace, name(deployment)))

    def delete(self, deployment: Json) -> None:
        """The Deployment as it was seen, and with it all that it owns. One that has changed since stays."""
        seen = {part: deployment["metadata"][part] for part in ("uid", "resourceVersion")}
        try:
            self._cluster.delete(path("Deployment", self._settings.namespace, name(deployment)), seen)
        except Error as error:
            if error.code != "Conflict":
                raise

    def _make(self, workload: WorkloadSpec, request_timeout_s: float) -> Json:
        made = workload_manifests.deployment(workload, self._settings, request_timeout_s)
        try:
            found = self._apply(made)
        except Error as error:
            if error.code != "Conflict":
                raise
            # Another control plane has made it, and scaled it already.
            found = self._cluster.get(path("Deployment", self._settings.namespace, object_name(workload)))
        self._objects.put("Deployment", found)
        return found

    def _apply(self, made: Json) -> dict[str, Any]:
        where = path(made["kind"], self._settings.namespace, name(made))
        # A companion of an earlier Deployment of this name may still be there: it is taken over. A Deployment is not.
        return self._cluster.patch(where, made, FIELD_MANAGER, "apply", force=made["kind"] != "Deployment")

    def _change(self, found: Json, change: Callable[[Json], dict[str, Any] | None]) -> Json | None:
        """``change`` gives a patch for the Deployment as it is, None for none; what it is afterwards, None: gone."""
        where = path("Deployment", self._settings.namespace, name(found))
        for _ in range(_ATTEMPTS):
            patch = change(found)
            if patch is None:
                return found
            patch.setdefault("metadata", {})["resourceVersion"] = found["metadata"]["resourceVersion"]
            try:
                found = self._cluster.patch(where, patch, SCALE_FIELD_MANAGER)
            except Error as error:
                if error.code == "ResourceNotFound":
                    return None
                if error.code != "Conflict":
                    raise
                found = self._cluster.get(where)
            else:
                self._objects.put("Deployment", found)
                return found
        raise Error("KubernetesUnaccessible", f"{where} changes all the time", target=where)

    def _pod_names(self) -> set[str]:
        return {name(pod) for many in self._objects.snapshot().pods.values() for pod in many}
