"""What Azure ML's vocabulary can say and this server cannot honour.

Decides which fields are refused, and what to do instead: a field is honoured or refused, never ignored. Must not know
anything but the document, and whether its instances run on a cluster. A feature that arrives takes its lines out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amphitrite.schemas.errors import Violation
from amphitrite.schemas.names import key

Document = Mapping[str, Any]

#: Deployment fields that are refused whenever they say something: (field, why, what to do).
_FIELDS = (
    (
        "code_configuration",
        "scoring scripts are not run here: Triton serves the model's files itself",
        "make the script a model of Triton's python backend (<model>/1/model.py, whose TritonPythonModel.execute does "
        "what run does, and config.pbtxt), register it as type: triton_model, and remove code_configuration",
    ),
    ("data_collector", "data collection is not offered", "remove data_collector"),
    ("app_insights_enabled", "there is no Application Insights here", "set it to false or remove it"),
    ("private_network_connection", "private networks are not offered", "remove private_network_connection"),
)
#: The same, where instances are processes of this machine.
_FIELDS_WITHOUT_PODS = (
    ("resources", "there is no container whose resources could be set", "remove resources; instance_type says them"),
)


def in_endpoint(document: Document) -> list[Violation]:
    """What an endpoint document asks for in vain."""
    found = []
    if key(str(document.get("public_network_access") or "enabled")) == "disabled":
        found.append(_closed("public_network_access", "--host decides which addresses are listened on"))
    identity = document.get("identity") or {}
    if identity.get("user_assigned_identities") or "user" in key(str(identity.get("type", ""))):
        message = "user-assigned identities are not offered"
        found.append(Violation(("identity",), message, "remove identity, or set type: system_assigned"))
    return found


def in_deployment(document: Document, *, on_cluster: bool = False) -> list[Violation]:
    """What a deployment document asks for in vain; ``on_cluster``: its instances are pods."""
    fields = _FIELDS if on_cluster else (*_FIELDS, *_FIELDS_WITHOUT_PODS)
    found = [Violation((field,), why, hint) for field, why, hint in fields if document.get(field)]
    if document.get("model_mount_path") and not on_cluster and not document.get("environment"):
        hint = "remove model_mount_path, or give environment with an image of Triton"
        found.append(Violation(("model_mount_path",), "there is no container to mount the model into", hint))
    if key(str(document.get("egress_public_network_access") or "enabled")) == "disabled":
        pods = "network policies of the cluster decide what instances may reach"
        why = pods if on_cluster else "instances run as processes of this machine"
        found.append(_closed("egress_public_network_access", why))
    scale = str((document.get("scale_settings") or {}).get("type", "default"))
    if scale != "default":
        managed = document.get("type", "managed") == "managed"
        message = "ManagedOnlineEndpoint supports DefaultScaleSettings only." if managed else f"{scale} is not offered"
        found.append(Violation(("scale_settings", "type"), message, "set instance_count; remove scale_settings"))
    wait = (document.get("request_settings") or {}).get("max_queue_wait_ms")
    if wait:
        message = f"requests do not queue here ({wait} ms asked for): one above the bound is answered 429 at once"
        hint = (
            "remove max_queue_wait_ms; max_concurrent_requests_per_instance sets the bound, and a model's "
            "dynamic_batching.default_queue_policy how long a request may wait in Triton"
        )
        found.append(Violation(("request_settings", "max_queue_wait_ms"), message, hint))
    return found


def _closed(field: str, why: str) -> Violation:
    return Violation((field,), f"disabled is not offered; {why}", "set it to enabled or remove it")


def in_compute(document: Document) -> list[Violation]:
    """What a compute document asks for in vain."""
    if not document.get("resource_id"):
        return []
    message = "clusters are not found by their ARM id here"
    return [Violation(("resource_id",), message, "remove resource_id; give --kubeconfig FILE or --in-cluster")]
