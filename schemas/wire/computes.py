"""The wire form of Kubernetes computes and of the instance types of a cluster.

Decides the field of each wire property, and which properties are read-only. Must not validate
values or read files. ``kubeconfig`` (the text of the file) is only ever written. It, and fields
that Azure's InstanceTypeSchema lacks, are properties of our own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amphitrite.schemas import casing
from amphitrite.schemas.wire.endpoints import ENVELOPE, STATE, TAGS
from amphitrite.schemas.wire.field_tables import Field, Reader, enumeration, write

INSTANCE_TYPE = (
    Field("description", "description"),
    Field("node_selector", "nodeSelector"),
    Field("resources", "resources"),
    Field("tolerations", "tolerations"),
    Field("affinity", "affinity"),
    Field("topology_spread_constraints", "topologySpreadConstraints"),
    Field("priority_class_name", "priorityClassName"),
    Field("runtime_class_name", "runtimeClassName"),
    Field("image_pull_secrets", "imagePullSecrets"),
    Field("image", "image"),
)


def _write_types(types: list[Mapping[str, Any]]) -> dict[str, Any]:
    return {one["name"]: write(INSTANCE_TYPE, one) for one in types}


def _read_types(body: object) -> list[dict[str, Any]]:
    if not isinstance(body, Mapping):
        raise ValueError("must be a JSON object with instance types by name")
    reader, types = Reader(), []
    for name, entry in body.items():
        types.append({"name": name, **reader.read(INSTANCE_TYPE, reader.object(entry, (name,)), (name,))})
    if reader.violations:
        raise ValueError(str(reader.violations[0]))
    return types


KUBERNETES = (
    Field("namespace", "namespace"),
    Field("default_instance_type", "defaultInstanceType"),
    Field("instance_types", "instanceTypes", _write_types, _read_types),
    Field("kubeconfig", "kubeconfig"),
    Field("in_cluster", "inCluster"),
)
PROPERTIES = (
    enumeration("type", "computeType"),
    Field("description", "description"),
    Field("resource_id", "resourceId"),
    Field("properties", "properties", fields=KUBERNETES),
)
READ_ONLY = STATE | {"createdOn", "modifiedOn", "isAttachedCompute", "disableLocalAuth", "provisioningErrors"}


def compute_to_wire(document: Mapping[str, Any], location: str) -> dict[str, Any]:
    """The PUT body of a compute; its ``kubeconfig`` is the text of the file."""
    inner = {field.name for field in KUBERNETES}
    nested = {name: value for name, value in document.items() if name in inner}
    outer = {name: value for name, value in document.items() if name not in inner}
    body = write(PROPERTIES, {"type": "kubernetes", **outer, "properties": nested})
    return {"location": location, "tags": document.get("tags") or {}, "properties": body}


def compute_from_wire(name: str, body: object) -> dict[str, Any]:
    """The document of compute ``name``. Raises Error BadArgument."""
    reader = Reader()
    envelope = reader.object(body, ())
    document: dict[str, Any] = {"name": name}
    document.update(reader.read([TAGS], envelope, (), ENVELOPE | {"properties", "sku", "identity"}))
    properties = reader.object(envelope.get("properties"), ("properties",))
    read = reader.read(PROPERTIES, properties, ("properties",), READ_ONLY)
    reader.finish(f"computes/{name}")
    nested = read.pop("properties", {})
    return {**document, **read, **nested}


def listed_types(kind: str, document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The instance types in a canonical document of ``kind``, in our own form."""
    if kind == "instance_types":
        return list(document["instance_types"])
    items = document["items"] if kind == "azure_instance_type_list" else [document]
    return [
        {
            "name": item["metadata"]["name"],
            "resources": item["spec"]["resources"],
            **({"node_selector": item["spec"]["nodeSelector"]} if item["spec"].get("nodeSelector") else {}),
        }
        for item in items
    ]


def show_compute(resource: Mapping[str, Any], nodes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A compute as ``show`` and ``list`` print it, without secrets.

    ``nodes``: the response of listNodes.
    """
    body = resource["properties"]
    inner = body.get("properties") or {}
    output = {
        "name": resource.get("name"),
        "id": resource.get("id"),
        "type": casing.to_document(body.get("computeType")),
        "description": body.get("description"),
        "tags": resource.get("tags") or {},
        "location": resource.get("location"),
        "namespace": inner.get("namespace"),
        "in_cluster": inner.get("inCluster"),
        "default_instance_type": inner.get("defaultInstanceType"),
        "instance_types": _read_types(inner["instanceTypes"]) if inner.get("instanceTypes") is not None else None,
        "provisioning_state": body.get("provisioningState"),
        "created_on": body.get("createdOn"),
        "gpus": nodes.get("gpus") if nodes is not None else None,
        "nodes": [show_node(node) for node in nodes["nodes"]] if nodes is not None else None,
        "status": {casing.snake(name): value for name, value in (body.get("status") or {}).items()} or None,
    }
    return {name: value for name, value in output.items() if value is not None}


def show_node(node: Mapping[str, Any]) -> dict[str, Any]:
    """A node in the output of ``list-nodes``: Azure ML's AmlComputeNodeInfo, and resources."""
    return {
        "node_id": node["nodeId"],
        "node_state": node["nodeState"],
        "gpus": node["gpus"],
        "resources": node["resources"],
    }


def show_size(size: Mapping[str, Any]) -> dict[str, Any]:
    """A size in the output of ``list-sizes``: Azure ML's keys, and the resources of a pod."""
    names = {"vCPUs": "v_cp_us", "memoryGB": "memory_gb", "gpuClass": "gpu_class"}
    return {names.get(name, casing.snake(name)): value for name, value in size.items()}
