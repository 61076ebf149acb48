"""Changes to a workload's objects: create, scale, select a pod to stop, delete.

Decides the order of the requests, so that another control plane can continue after a crash at any
point, and so that two of them do not both count the same change. Must not know when to change
something, or instances.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from amphitrite.controlplane.core.desired.resources import WorkloadSpec, is_complete
from amphitrite.controlplane.runtimes.kubernetes.client.api_client import Cluster
from amphitrite.controlplane.runtimes.kubernetes.client.api_paths import path
from amphitrite.controlplane.runtimes.kubernetes.pods.object_cache import ObjectCache
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_facts import Json, name
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_instances import (
    chosen_by_another,
    is_ending,
    pods_to_stop,
    replicas,
)
from amphitrite.controlplane.runtimes.kubernetes.workloads import earlier_layout, grants, workload_manifests
from amphitrite.controlplane.runtimes.kubernetes.workloads.object_names import (
    DELETION_COST,
    FIELD_MANAGER,
    SCALE_FIELD_MANAGER,
    STOPPING_ANNOTATION,
    object_name,
)
from amphitrite.controlplane.runtimes.kubernetes.workloads.pod_settings import KubernetesSettings
from amphitrite.schemas.errors import Error

#: Attempts before giving up: others change a Deployment too (its controller writes the status), and
#: then it is read again.
_ATTEMPTS = 8
#: A ReplicaSet deletes pods with a lower deletion cost first.
_DELETE_FIRST = "-1000"


class Writer:
    """Raises Error as ``Cluster`` does. Answers of the API server are stored in ``objects`` at
    once."""

    def __init__(self, cluster: Cluster, settings: KubernetesSettings, objects: ObjectCache) -> None:
        self._cluster, self._settings, self._objects = cluster, settings, objects

    def ensure(self, workload: WorkloadSpec, count: int, request_timeout_s: float) -> None:
        """Scales to at least ``count`` pods. Does nothing while the Deployment is ending."""
        deployment = self._objects.deployment(object_name(workload)) or self._create(workload, request_timeout_s)
        if is_ending(deployment) or replicas(deployment) >= count:
            return
        if replicas(deployment) == 0:
            _require_complete(workload)
            for one in workload_manifests.dependents(workload, self._settings, deployment["metadata"]["uid"]):
                self._apply(one)
        if count > 1:
            self._apply(workload_manifests.disruption_budget(workload, self._settings, deployment["metadata"]["uid"]))

        def more(now: Json) -> dict[str, Any] | None:
            return None if is_ending(now) or replicas(now) >= count else {"spec": {"replicas": count}}

        self._change(deployment, more)

    def release(self, deployment: Json, pod: str | None) -> None:
        """Scales down by one pod: the named one, or one that does not exist yet."""
        if pod is not None and replicas(deployment) > 1:
            cost = {"metadata": {"annotations": {DELETION_COST: _DELETE_FIRST}}}
            try:
                self._cluster.patch(path("Pod", self._settings.namespace, pod), cost, SCALE_FIELD_MANAGER)
            except Error as error:
                if error.code != "ResourceNotFound":
                    raise

        def less(now: Json) -> dict[str, Any] | None:
            if replicas(now) == 0 or (pod is not None and chosen_by_another(deployment, now, pod)):
                return None
            chosen = [one for one in pods_to_stop(now) if one in self._pod_names()]
            chosen = [*(one for one in chosen if one != pod), *([pod] if pod else [])]
            annotations = {STOPPING_ANNOTATION: ",".join(chosen)}
            return {"metadata": {"annotations": annotations}, "spec": {"replicas": replicas(now) - 1}}

        left = self._change(deployment, less)
        if left is not None and replicas(left) <= 1:
            self._cluster.delete(path("PodDisruptionBudget", self._settings.namespace, name(deployment)))

    def redact(self, deployment: Json) -> None:
        """Takes environment variables out of objects that an earlier release has made."""
        patch = earlier_layout.deployment_patch(deployment)
        if patch is None or not replicas(deployment):  # Without replicas it is still being created.
            return
        # The Deployment last: while it has them, this is not done.
        self._patch("ConfigMap", deployment, earlier_layout.CONFIG_MAP_PATCH)
        self._patch("Deployment", deployment, patch)

    def renew_grant(self, deployment: Json, workload: WorkloadSpec) -> None:
        """Replaces the grant in the Secret if there is a newer one: pods that are made later use
        it too."""
        if not replicas(deployment) or grants.place(deployment) != "secret":
            return
        grant = self._settings.grant(workload)
        if not grants.is_marked(deployment, grant) and self._patch("Secret", deployment, grants.secret_patch(grant)):
            self._patch("Deployment", deployment, {"metadata": {"annotations": grants.mark(grant)}})

    def delete(self, deployment: Json) -> None:
        """Deletes the Deployment and all that it owns, unless it has changed since it was read."""
        preconditions = {part: deployment["metadata"][part] for part in ("uid", "resourceVersion")}
        try:
            self._cluster.delete(path("Deployment", self._settings.namespace, name(deployment)), preconditions)
        except Error as error:
            if error.code != "Conflict":
                raise

    def _create(self, workload: WorkloadSpec, request_timeout_s: float) -> Json:
        _require_complete(workload)
        manifest = workload_manifests.deployment(workload, self._settings, request_timeout_s)
        try:
            deployment = self._apply(manifest)
        except Error as error:
            if error.code != "Conflict":
                raise
            # Another control plane has created it, and may have scaled it.
            deployment = self._cluster.get(path("Deployment", self._settings.namespace, object_name(workload)))
        self._objects.put("Deployment", deployment)
        return deployment

    def _apply(self, manifest: Json) -> dict[str, Any]:
        where = path(manifest["kind"], self._settings.namespace, name(manifest))
        # A dependent of an earlier Deployment of this name may still exist and is taken over. A
        # Deployment is not.
        return self._cluster.patch(where, manifest, FIELD_MANAGER, "apply", force=manifest["kind"] != "Deployment")

    def _change(self, deployment: Json, change: Callable[[Json], dict[str, Any] | None]) -> Json | None:
        """Applies the patch that ``change`` returns for the current Deployment, if any. Returns the
        result, None if the Deployment is gone."""
        where = path("Deployment", self._settings.namespace, name(deployment))
        for _ in range(_ATTEMPTS):
            patch = change(deployment)
            if patch is None:
                return deployment
            patch.setdefault("metadata", {})["resourceVersion"] = deployment["metadata"]["resourceVersion"]
            try:
                deployment = self._cluster.patch(where, patch, SCALE_FIELD_MANAGER)
            except Error as error:
                if error.code == "ResourceNotFound":
                    return None
                if error.code != "Conflict":
                    raise
                deployment = self._cluster.get(where)
            else:
                self._objects.put("Deployment", deployment)
                return deployment
        raise Error(
            "KubernetesUnaccessible", f"{where} keeps changing; the update failed {_ATTEMPTS} times", target=where
        )

    def _patch(self, kind: str, deployment: Json, body: Mapping[str, Any]) -> bool:
        """Changes the object of this kind that has the Deployment's name. False if it is gone."""
        where = path(kind, self._settings.namespace, name(deployment))
        try:
            changed = self._cluster.patch(where, body, SCALE_FIELD_MANAGER)
        except Error as error:
            if error.code != "ResourceNotFound":
                raise
            return False
        if kind == "Deployment":
            self._objects.put("Deployment", changed)
        return True

    def _pod_names(self) -> set[str]:
        return {name(pod) for many in self._objects.snapshot().pods.values() for pod in many}


def _require_complete(workload: WorkloadSpec) -> None:
    """Raises Error("Conflict") for a workload that was read from the cluster, which does not give
    its variables back."""
    if not is_complete(workload):
        message = f"{workload.name} is gone from the cluster, and with it its environment variables"
        raise Error("Conflict", message, target=workload.name, hint="update the deployment to make new instances")
