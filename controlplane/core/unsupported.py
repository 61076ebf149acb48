"""What Azure ML's vocabulary can say and this server cannot honour.

Decides which fields are refused, and what to do instead: a field is honoured or refused, never ignored. Must not know
anything but the document. A feature that arrives takes its lines out of here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amphitrite.schemas.errors import Violation
from amphitrite.schemas.names import key

Document = Mapping[str, Any]

#: Deployment fields that are refused whenever they say something: (field, why, what to do).
_FIELDS = (
    ("code_configuration", "scoring scripts are not offered", "serve a triton_model; remove code_configuration"),
    ("environment", "custom containers are not offered", "serve a triton_model; remove environment"),
    ("model_mount_path", "there is no container to mount the model into", "remove model_mount_path"),
    ("data_collector", "data collection is not offered", "remove data_collector"),
    ("app_insights_enabled", "there is no Application Insights here", "set it to false or remove it"),
    ("private_network_connection", "private networks are not offered", "remove private_network_connection"),
)


def in_endpoint(document: Document) -> list[Violation]:
    """What an endpoint document asks for in vain."""
    found = []
    mode = str(document.get("auth_mode", "key"))
    if mode != "key":
        found.append(Violation(("auth_mode",), f"{mode} is not offered; allowed: key", "set auth_mode: key"))
    if key(str(document.get("public_network_access") or "enabled")) == "disabled":
        found.append(_closed("public_network_access", "--host decides which addresses are listened on"))
    identity = document.get("identity") or {}
    if identity.get("user_assigned_identities") or "user" in key(str(identity.get("type", ""))):
        message = "user-assigned identities are not offered"
        found.append(Violation(("identity",), message, "remove identity, or set type: system_assigned"))
    if document.get("compute"):
        found.append(_no_kubernetes("compute", str(document["compute"]), "remove compute"))
    return found


def in_deployment(document: Document) -> list[Violation]:
    """What a deployment document asks for in vain."""
    found = [Violation((field,), why, hint) for field, why, hint in _FIELDS if document.get(field)]
    kind = str(document.get("type", "managed"))
    if kind != "managed":
        found.append(_no_kubernetes("type", kind, "set type: managed"))
    if key(str(document.get("egress_public_network_access") or "enabled")) == "disabled":
        found.append(_closed("egress_public_network_access", "instances run as processes of this machine"))
    scale = str((document.get("scale_settings") or {}).get("type", "default"))
    if scale != "default":
        message = "ManagedOnlineEndpoint supports DefaultScaleSettings only."
        found.append(Violation(("scale_settings", "type"), message, "set instance_count; remove scale_settings"))
    wait = (document.get("request_settings") or {}).get("max_queue_wait_ms")
    if wait:
        message = f"requests do not queue here ({wait} ms asked for): one above the bound is answered 429 at once"
        hint = "remove max_queue_wait_ms; max_concurrent_requests_per_instance sets the bound"
        found.append(Violation(("request_settings", "max_queue_wait_ms"), message, hint))
    return found


def _closed(field: str, why: str) -> Violation:
    return Violation((field,), f"disabled is not offered; {why}", "set it to enabled or remove it")


def _no_kubernetes(field: str, value: str, hint: str) -> Violation:
    message = f"{value}: no Kubernetes compute is attached; instances run on this machine (compute local)"
    return Violation((field,), message, hint)
