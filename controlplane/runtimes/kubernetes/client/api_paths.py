"""API paths of each kind of object.

Decides paths. Must not know the API server.
"""

from __future__ import annotations

from collections.abc import Mapping

_PLACES: Mapping[str, tuple[str, str]] = {
    "ConfigMap": ("/api/v1", "configmaps"),
    "Deployment": ("/apis/apps/v1", "deployments"),
    "Event": ("/api/v1", "events"),
    "NetworkPolicy": ("/apis/networking.k8s.io/v1", "networkpolicies"),
    "Pod": ("/api/v1", "pods"),
    "PodDisruptionBudget": ("/apis/policy/v1", "poddisruptionbudgets"),
    "Secret": ("/api/v1", "secrets"),
    "Service": ("/api/v1", "services"),
}


def path(kind: str, namespace: str, name: str = "", part: str = "") -> str:
    """The path of a collection in a namespace, of one object in it, or of a subresource
    (``log``)."""
    base, plural = _PLACES[kind]
    return "/".join([f"{base}/namespaces/{namespace}/{plural}", *filter(None, (name, part))])
