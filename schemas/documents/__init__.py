"""What crosses a process boundary: documents, their JSON Schemas, their wire form, and the one error.

Decides the public functions of validation. Must not import anything costly on its own: every process of the product
imports ``amphitrite.schemas.errors`` first, so the work is in modules imported when first used.

Kinds: ``managed_online_endpoint``, ``kubernetes_online_endpoint``, ``managed_online_deployment``,
``kubernetes_online_deployment``, ``model``, ``environment``, ``legacy_endpoint`` (the older single document with
``deployments:`` inline, which ``amphitrite.schemas.documents.inline_deployments.split`` takes apart), ``kubernetes_compute``, and the
instance types of one: ``instance_types`` (ours), ``azure_instance_type`` and ``azure_instance_type_list`` (Azure ML's
custom resources).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from amphitrite.schemas.errors import Violation

# httpx imports its own command line wherever click and rich are installed: two thirds of what importing httpx costs
# every command, agent and server. Nothing here uses that; httpx goes on without it, as where those two are missing
# (decision 0007).
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]

KINDS = (
    "managed_online_endpoint",
    "kubernetes_online_endpoint",
    "managed_online_deployment",
    "kubernetes_online_deployment",
    "model",
    "environment",
    "legacy_endpoint",
    "kubernetes_compute",
    "instance_types",
    "azure_instance_type",
    "azure_instance_type_list",
)


def load(kind: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of ``kind``, self-contained; shared, so not to be changed.

    Raises ValueError for a kind that is not in KINDS.
    """
    from amphitrite.schemas.documents.schema_files import schema

    return schema(kind)


def validate(kind: str, document: object, texts: Mapping[tuple[str | int, ...], str] | None = None) -> list[Violation]:
    """Everything wrong with ``document``, in the order of its paths; empty when it is valid.

    Any object may be given. ``texts`` are the source texts of scalars by path, where known: fields that are text by
    meaning (a version ``1.0``) take them. Spellings that Azure ML accepts are accepted: see ``normalize``.
    """
    from amphitrite.schemas.documents.violations import violations

    return violations(kind, document, texts or {})


def normalize(
    kind: str, document: Mapping[str, Any], texts: Mapping[tuple[str | int, ...], str] | None = None
) -> dict[str, Any]:
    """The canonical form of a valid document.

    Enumerations become snake_case (``AMLToken`` -> ``aml_token``), numbers written as text become numbers, versions,
    tags and environment variables become text, ``nvidia.com/gpu`` becomes ``gpu``; ``$schema`` and read-only fields
    are dropped. Defaults are not filled in.
    """
    from amphitrite.schemas.documents.normalization import canonical

    return canonical(kind, document, texts or {})


def endpoint_kind(document: object) -> str:
    """``compute`` makes an endpoint a Kubernetes endpoint."""
    kubernetes = isinstance(document, Mapping) and document.get("compute") is not None
    return "kubernetes_online_endpoint" if kubernetes else "managed_online_endpoint"


def deployment_kind(document: object) -> str:
    """``type: kubernetes`` (in any case) makes a deployment a Kubernetes deployment."""
    kind = document.get("type") if isinstance(document, Mapping) else None
    kubernetes = isinstance(kind, str) and kind.lower() == "kubernetes"
    return "kubernetes_online_deployment" if kubernetes else "managed_online_deployment"


def instance_types_kind(document: object) -> str:
    """``kind: InstanceTypeList`` and ``kind: InstanceType``, or their ``apiVersion``, make it a custom resource."""
    kind = document.get("kind") if isinstance(document, Mapping) else None
    if kind == "InstanceTypeList" or (isinstance(document, Mapping) and "items" in document):
        return "azure_instance_type_list"
    custom = isinstance(document, Mapping) and ("apiVersion" in document or "kind" in document or "spec" in document)
    return "azure_instance_type" if custom else "instance_types"
