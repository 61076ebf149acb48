"""A Lease of Kubernetes' API group coordination.k8s.io: read, and written unless somebody else has written it since.

Decides the object's fields, and that a lost race is an answer, not a failure. Needs the verbs get, create and patch of
``leases``. Must not know when to lead. Times in it are for people; see ``leadership``.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from amphitrite.controlplane.leadership.lease_rules import DURATION_S, Lease
from amphitrite.controlplane.runtimes.kubernetes.client.api_client import Cluster
from amphitrite.schemas.errors import Error

FIELD_MANAGER = "amphitrite-leader"


class LeaseStore:
    """One named Lease. Its verbs raise Error("KubernetesUnaccessible"), InvalidDeploymentSpec."""

    def __init__(self, cluster: Cluster, namespace: str, name: str) -> None:
        self._cluster, self._name = cluster, name
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"

    def read(self) -> Lease | None:
        """The Lease as it is, None when there is none."""
        try:
            return _lease(self._cluster.get(f"{self._collection}/{self._name}"))
        except Error as error:
            if error.code == "ResourceNotFound":
                return None
            raise

    def write(self, before: Lease | None, holder: str) -> Lease | None:
        """Make ``holder`` (empty: nobody) its holder as of now; None when somebody has changed it since ``before``."""
        now = datetime.now(timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")
        # Given back, it has run out at once, also for those who do not look at the holder.
        spec: dict[str, Any] = {"holderIdentity": holder, "renewTime": now}
        spec["leaseDurationSeconds"] = int(DURATION_S) if holder else 1
        if holder and (before is None or holder != before.holder):
            spec |= {"acquireTime": now, "leaseTransitions": 0 if before is None else before.transitions + 1}
        try:
            if before is None:
                body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": self._name}}
                return _lease(self._cluster.create(self._collection, {**body, "spec": spec}, FIELD_MANAGER))
            # With a revision the API server refuses what was not made from the newest one. Labels stay whoever's.
            body = {"metadata": {"resourceVersion": before.revision}, "spec": spec}
            return _lease(self._cluster.patch(f"{self._collection}/{self._name}", body, FIELD_MANAGER))
        except Error as error:
            if error.code in ("Conflict", "ResourceNotFound"):
                return None
            raise


def _lease(found: dict[str, Any]) -> Lease:
    spec = found.get("spec") or {}
    return Lease(
        holder=spec.get("holderIdentity") or "",
        duration_s=float(spec.get("leaseDurationSeconds") or DURATION_S),
        renewed=spec.get("renewTime") or "",
        transitions=spec.get("leaseTransitions") or 0,
        revision=found["metadata"]["resourceVersion"],
    )
