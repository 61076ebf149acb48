"""The check of a cluster before it is attached: it answers, the namespace exists, the permissions
suffice.

Decides what is checked, and that the error names what is missing and what to do. Must not know
HTTP. Source: https://kubernetes.io/docs/reference/access-authn-authz/authorization/
(SelfSubjectAccessReview)
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from amphitrite.controlplane.core.desired.compute_clusters import Compute
from amphitrite.controlplane.runtimes.kubernetes.client.api_client import Cluster, PermissionDenied
from amphitrite.controlplane.runtimes.kubernetes.client.permissions import RULES, Rule
from amphitrite.schemas.errors import Error

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
FIELD_MANAGER = "amphitrite"


def check(compute: Compute, cluster: Cluster) -> None:
    """Raises Error: KubernetesUnaccessible (no answer, or missing permissions),
    NamespaceNotFound."""
    missing = [
        f"{verb} {rule.resource}{f'.{rule.group}' if rule.group else ''}"
        for rule, verb in _verbs(RULES)
        if not _allowed(cluster, compute.namespace, rule, verb)
    ]
    if missing:
        raise Error(
            "KubernetesUnaccessible",
            f"the service account lacks permissions in namespace {compute.namespace}: {', '.join(missing)}",
            target=compute.name,
            hint="grant it the Role of the chart (deploy/helm/amphitrite)",
        )
    # Without permission to read the namespace, its absence shows when the first pod starts.
    with suppress(PermissionDenied):
        cluster.get(f"/api/v1/namespaces/{compute.namespace}")


def _verbs(rules: Sequence[Rule]) -> list[tuple[Rule, str]]:
    return [(rule, verb) for rule in rules for verb in rule.verbs]


def _allowed(cluster: Cluster, namespace: str, rule: Rule, verb: str) -> bool:
    resource, _, part = rule.resource.partition("/")
    attributes = {"namespace": namespace, "group": rule.group, "resource": resource, "subresource": part, "verb": verb}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    return bool(cluster.create(_REVIEWS, review, FIELD_MANAGER)["status"]["allowed"])
