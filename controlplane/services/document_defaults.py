"""Defaults on the way in and out: left out of what is stored, filled in where it is shown.

Decides which values are defaults of this server. A reply shows what is in force, clients send replies back as updates,
and such an update must change nothing: documents that mean the same are stored the same. Must not know HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from amphitrite.controlplane.core.desired import resources

Document = dict[str, Any]

ENDPOINT: Mapping[str, Any] = {"public_network_access": "enabled"}
DEPLOYMENT: Mapping[str, Any] = {
    "scale_settings": {"type": "default"},
    "egress_public_network_access": "enabled",
    "request_settings": {
        "request_timeout_ms": resources.DEFAULT_REQUEST_TIMEOUT_MS,
        "max_concurrent_requests_per_instance": resources.DEFAULT_MAX_CONCURRENT_REQUESTS_PER_INSTANCE,
        "max_queue_wait_ms": 0,
    },
    "readiness_probe": asdict(resources.DEFAULT_READINESS_PROBE),
    "liveness_probe": asdict(resources.DEFAULT_LIVENESS_PROBE),
}

#: Fields that Kubernetes documents do not have: the cluster decides who reaches what.
_MANAGED_ONLY = frozenset({"egress_public_network_access"})


def of_endpoint(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The defaults of an endpoint of its kind."""
    return {} if document.get("compute") else ENDPOINT


def of_deployment(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The defaults of a deployment of its kind."""
    if document.get("type") != "kubernetes":
        return DEPLOYMENT
    return {name: default for name, default in DEPLOYMENT.items() if name not in _MANAGED_ONLY}


def fill(document: Mapping[str, Any], defaults: Mapping[str, Any]) -> Document:
    """``document`` with every default that it leaves open."""
    filled = {**defaults, **document}
    for name, default in defaults.items():
        if isinstance(default, Mapping):
            filled[name] = fill(document.get(name) or {}, default)
    return filled


def strip(document: Mapping[str, Any], defaults: Mapping[str, Any]) -> Document:
    """``document`` without what is a default anyway; a part of which nothing is left goes too."""
    kept = {}
    for name, value in document.items():
        default = defaults.get(name)
        if isinstance(value, Mapping) and isinstance(default, Mapping):
            value = strip(value, default)
            if not value:
                continue
        elif name in defaults and value == default:
            continue
        kept[name] = value
    return kept
