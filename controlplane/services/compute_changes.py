"""Checks of a compute's document before it is stored.

Decides that only a usable cluster is stored, and that no instance type in use is removed. Must not
know HTTP or Kubernetes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amphitrite.controlplane.core.desired import compute_clusters, instance_types
from amphitrite.controlplane.core.desired.compute_clusters import Compute
from amphitrite.controlplane.core.rules import compute_rules
from amphitrite.controlplane.services import kubeconfig_rules, wire_documents
from amphitrite.controlplane.services.services import Services
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key, parse_compute


def judge(services: Services, name: str, document: Mapping[str, Any], former: Compute | None) -> Compute:
    """The compute that ``document`` describes.

    Checks access to the cluster, unless the kubeconfig is unchanged.
    Raises Error: InvalidDocument, KubernetesUnaccessible, NamespaceNotFound.
    """
    violations = compute_rules.check_compute(document, former=former)
    if document.get("kubeconfig") is not None:
        violations += kubeconfig_rules.check(document["kubeconfig"])
    wire_documents.refuse(violations, name)
    wanted = compute_clusters.compute_from_document(document, former)
    if former is None or wanted.kubeconfig != former.kubeconfig:
        services.attach_check(wanted)
    return wanted


def refuse_lost_types(services: Services, former: Compute, wanted: Compute) -> None:
    """Raises Error("Conflict") if ``wanted`` lacks an instance type that a deployment uses."""
    known = {key(one.name) for one in instance_types.shapes(wanted)}
    lost = {key(one.name) for one in former.instance_types} - known
    for endpoint in _users(services, former.name):
        for record in services.store.list_deployments(endpoint):
            if key(str(record.document.get("instance_type"))) in lost:
                message = f"instance type {record.document['instance_type']} is used by {endpoint}/{record.name}"
                raise Error(
                    "Conflict",
                    message,
                    target=former.name,
                    hint="keep the instance type, or change the deployment first",
                )


def _users(services: Services, name: str) -> list[str]:
    """Names of the endpoints that run on the compute."""
    documents_of = {record.name: record.document for record in services.store.list_endpoints()}
    return [
        endpoint
        for endpoint, document in documents_of.items()
        if document.get("compute") and key(parse_compute(document["compute"]) or "") == key(name)
    ]
