"""A Lease of the Kubernetes API group coordination.k8s.io: read, and written unless somebody else
has written.

Decides the object's fields, and that a lost race is a result rather than an error. Needs the verbs
get, create and patch on ``leases``. Must not know when to lead. The times in it are for people;
``lease_rules`` does not compare them.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from amphitrite.controlplane.leadership.lease_rules import DURATION_S, Lease
from amphitrite.controlplane.runtimes.kubernetes.client.api_client import Cluster
from amphitrite.schemas.errors import Error

FIELD_MANAGER = "amphitrite-leader"


class LeaseStore:
    """One named Lease. Its methods raise Error("KubernetesUnaccessible") and
    InvalidDeploymentSpec."""

    def __init__(self, cluster: Cluster, namespace: str, name: str) -> None:
        self._cluster, self._name = cluster, name
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"

    def read(self) -> Lease | None:
        """The Lease, None if it does not exist."""
        try:
            return _lease(self._cluster.get(f"{self._collection}/{self._name}"))
        except Error as error:
            if error.code == "ResourceNotFound":
                return None
            raise

    def write(self, before: Lease | None, holder: str) -> Lease | None:
        """Makes ``holder`` (empty: nobody) the holder now. None if somebody has changed it since
        ``before``."""
        now = datetime.now(timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")
        # A released Lease expires at once, also for clients that ignore the holder.
        spec: dict[str, Any] = {"holderIdentity": holder, "renewTime": now}
        spec["leaseDurationSeconds"] = int(DURATION_S) if holder else 1
        if holder and (before is None or holder != before.holder):
            spec |= {"acquireTime": now, "leaseTransitions": 0 if before is None else before.transitions + 1}
        try:
            if before is None:
                body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": self._name}}
                return _lease(self._cluster.create(self._collection, {**body, "spec": spec}, FIELD_MANAGER))
            # The API server refuses the write unless the revision is the newest. Labels are not
            # changed.
            body = {"metadata": {"resourceVersion": before.revision}, "spec": spec}
            return _lease(self._cluster.patch(f"{self._collection}/{self._name}", body, FIELD_MANAGER))
        except Error as error:
            if error.code in ("Conflict", "ResourceNotFound"):
                return None
            raise


def _lease(obj: dict[str, Any]) -> Lease:
    spec = obj.get("spec") or {}
    return Lease(
        holder=spec.get("holderIdentity") or "",
        duration_s=float(spec.get("leaseDurationSeconds") or DURATION_S),
        renew_time=spec.get("renewTime") or "",
        transitions=spec.get("leaseTransitions") or 0,
        revision=obj["metadata"]["resourceVersion"],
    )
