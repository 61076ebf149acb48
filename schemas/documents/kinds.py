"""The kinds of documents, and how to recognize the kind of a document.

Decides only the names of kinds. Must not know their fields.

``legacy_endpoint`` is Azure ML's older single document with ``deployments:`` inline.
``azure_instance_type`` and ``azure_instance_type_list`` are Azure ML's custom resources;
``instance_types`` is our own form.
"""

from __future__ import annotations

from collections.abc import Mapping

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


def endpoint_kind(document: object) -> str:
    """The kind of an endpoint: with ``compute`` it is a Kubernetes endpoint."""
    kubernetes = isinstance(document, Mapping) and document.get("compute") is not None
    return "kubernetes_online_endpoint" if kubernetes else "managed_online_endpoint"


def deployment_kind(document: object) -> str:
    """The kind of a deployment: a Kubernetes one has ``type: kubernetes`` (in any case)."""
    kind = document.get("type") if isinstance(document, Mapping) else None
    kubernetes = isinstance(kind, str) and kind.lower() == "kubernetes"
    return "kubernetes_online_deployment" if kubernetes else "managed_online_deployment"


def instance_types_kind(document: object) -> str:
    """The kind of a document of instance types: custom resources have ``kind``."""
    kind = document.get("kind") if isinstance(document, Mapping) else None
    if kind == "InstanceTypeList" or (isinstance(document, Mapping) and "items" in document):
        return "azure_instance_type_list"
    custom = isinstance(document, Mapping) and ("apiVersion" in document or "kind" in document or "spec" in document)
    return "azure_instance_type" if custom else "instance_types"
