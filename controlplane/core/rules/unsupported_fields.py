"""The parts of Azure ML's documents that this server does not support.

Decides which fields are refused, and what to do instead. A field is supported or refused, never
ignored. Must not know anything but the document and whether its instances run on a cluster.
Supporting a feature removes its lines here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amphitrite.schemas.errors import Violation
from amphitrite.schemas.names import key

Document = Mapping[str, Any]

#: Deployment fields that are refused if they are set: (field, why, what to do).
_FIELDS = (
    (
        "code_configuration",
        "scoring scripts are not supported: Triton serves the model's files",
        "move the script into a model of Triton's python backend (config.pbtxt and <model>/1/model.py, with the code "
        "of run in TritonPythonModel.execute), register it as type: triton_model, and remove code_configuration",
    ),
    ("data_collector", "data collection is not supported", "remove data_collector"),
    ("private_network_connection", "private networks are not supported", "remove private_network_connection"),
)
#: The same, where instances are processes on this machine.
_FIELDS_WITHOUT_PODS = (
    (
        "resources",
        "instances on this machine are processes without resource settings",
        "remove resources; use instance_type",
    ),
)


def in_endpoint(document: Document) -> list[Violation]:
    """Violations of an endpoint document."""
    violations = []
    if key(str(document.get("public_network_access") or "enabled")) == "disabled":
        violations.append(_closed("public_network_access", "the server listens on the addresses of --host"))
    identity = document.get("identity") or {}
    if identity.get("user_assigned_identities") or "user" in key(str(identity.get("type", ""))):
        message = "user-assigned identities are not supported"
        violations.append(Violation(("identity",), message, "remove identity, or set type: system_assigned"))
    return violations


def in_deployment(document: Document, *, on_cluster: bool = False) -> list[Violation]:
    """Violations of a deployment document. ``on_cluster``: its instances are pods."""
    fields = _FIELDS if on_cluster else (*_FIELDS, *_FIELDS_WITHOUT_PODS)
    violations = [Violation((field,), why, hint) for field, why, hint in fields if document.get(field)]
    if document.get("model_mount_path") and not on_cluster and not document.get("environment"):
        message = "instances on this machine have no container to mount the model into"
        hint = "remove model_mount_path, or set an environment with a Triton image"
        violations.append(Violation(("model_mount_path",), message, hint))
    if key(str(document.get("egress_public_network_access") or "enabled")) == "disabled":
        pods = "use network policies of the cluster to limit what instances reach"
        why = pods if on_cluster else "instances run as processes of this machine"
        violations.append(_closed("egress_public_network_access", why))
    return violations


def _closed(field: str, why: str) -> Violation:
    return Violation((field,), f"disabled is not supported; {why}", "set it to enabled or remove it")


def in_compute(document: Document) -> list[Violation]:
    """Violations of a compute document."""
    if not document.get("resource_id"):
        return []
    message = "a cluster's ARM resource ID is not supported"
    return [Violation(("resource_id",), message, "remove resource_id; give --kubeconfig FILE or --in-cluster")]
