"""Defaults of documents: removed before storing, filled in for replies.

Decides which values are defaults of this server. A reply shows the values in force. Clients send
replies back as updates, and such an update must change nothing. So documents of equal meaning are
stored equal. Must not know HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from amphitrite.controlplane.core.desired import resources
from amphitrite.controlplane.core.desired.scale_settings import PREFIX, TARGET_UTILIZATION

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
#: Of ``scale_settings`` of type ``target_utilization``.
_TARGET_UTILIZATION: Mapping[str, Any] = {
    "type": "default",
    "min_instances": 1,
    "max_instances": 1,
    "polling_interval": 1,
    "target_utilization_percentage": 70,
}

#: Fields that Kubernetes documents do not have. There the cluster controls network access.
_MANAGED_ONLY = frozenset({"egress_public_network_access"})


def of_endpoint(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The defaults for this kind of endpoint."""
    return {} if document.get("compute") else ENDPOINT


def of_deployment(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The defaults for this kind of deployment."""
    defaults = DEPLOYMENT
    if (document.get("scale_settings") or {}).get("type") == TARGET_UTILIZATION:
        given = document.get("properties") or {}
        own = {name: value for name, value in _TARGET_UTILIZATION.items() if f"{PREFIX}{name}" not in given}
        defaults = {**defaults, "scale_settings": own}
    if document.get("type") != "kubernetes":
        return defaults
    return {name: default for name, default in defaults.items() if name not in _MANAGED_ONLY}


def fill(document: Mapping[str, Any], defaults: Mapping[str, Any]) -> Document:
    """``document`` with a default for each field that it lacks."""
    filled = {**defaults, **document}
    for name, default in defaults.items():
        if isinstance(default, Mapping):
            filled[name] = fill(document.get(name) or {}, default)
    return filled


def strip(document: Mapping[str, Any], defaults: Mapping[str, Any]) -> Document:
    """``document`` without fields that equal their default and without objects left empty."""
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
