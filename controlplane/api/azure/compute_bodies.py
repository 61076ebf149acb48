"""Replies about computes, their nodes and their instance types.

Decides their shapes, which are Azure's where Azure has one, and that they contain no secret. Must
not know HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from amphitrite.controlplane.core.capacity import node_capacity
from amphitrite.controlplane.core.capacity.node_capacity import NodeCapacity
from amphitrite.controlplane.core.desired import instance_types
from amphitrite.controlplane.core.desired.compute_clusters import Compute, PodShape, compute_document
from amphitrite.controlplane.services.services import Services
from amphitrite.schemas import wire
from amphitrite.schemas.names import PROVIDER, compute_id, key

Reply = dict[str, Any]


def compute(name: str, of: Compute | None, services: Services) -> Reply:
    """A compute, without its kubeconfig. ``of``: None for this machine."""
    document = compute_document(of) if of is not None else {"tags": {}}
    body: Reply = wire.compute_to_wire(document, services.settings.location)
    if of is None:
        body["properties"] = {"computeType": "Local", "description": "This machine."}
    body["properties"] |= {"isAttachedCompute": name != services.default_compute, "provisioningState": "Succeeded"}
    return {
        "id": compute_id(services.workspace, name),
        "name": name,
        "type": f"{PROVIDER}/workspaces/computes",
        **body,
    }


def node(of: NodeCapacity) -> Reply:
    """A node in Azure's AmlComputeNodeInformation shape, with its total and free resources."""
    names = sorted(name for name in of.allocatable if name in ("cpu", "memory", "pods") or "/" in name)
    return {
        "nodeId": of.name,
        "nodeState": "unusable" if not of.schedulable else "running" if of.pods else "idle",
        "gpus": gpus([of]),
        "resources": {name: _resource(name, of) for name in names},
    }


def _resource(name: str, node: NodeCapacity) -> dict[str, str]:
    total, left = node_capacity.quantity(node.allocatable[name]), node_capacity.free(node, name)
    return {"total": node_capacity.format_quantity(name, total), "free": node_capacity.format_quantity(name, left)}


def gpus(nodes: Iterable[NodeCapacity]) -> dict[str, int]:
    """GPUs and GPU partitions: the total, those requested by pods, and those free on nodes that
    accept pods."""
    total = used = left = 0
    for node in nodes:
        for name in node.allocatable:
            if _is_gpu(name):
                all_, rest = int(node_capacity.quantity(node.allocatable[name])), int(node_capacity.free(node, name))
                total, used = total + all_, used + all_ - rest
                left += max(rest, 0) if node.schedulable else 0
    return {"total": total, "used": used, "free": left}


def _is_gpu(resource: str) -> bool:
    _, slash, name = resource.partition("/")
    return bool(slash) and (name == "gpu" or name.startswith(("mig-", "gpu.")))


def size(shape: PodShape, *, own: bool) -> Reply:
    """An instance type of a cluster and what its pods request. ``own``: the compute defines it, not
    Azure."""
    demand = node_capacity.pod_demand(shape)
    azure = instance_types.INSTANCE_TYPES.get(key(shape.name)) if not own else None
    return {
        "name": shape.name,
        "vCPUs": float(demand.get("cpu", Fraction())),
        "memoryGB": round(float(demand.get("memory", Fraction()) / 1024**3), 2),
        "gpus": sum(int(value) for name, value in demand.items() if _is_gpu(name)),
        "gpuClass": azure.gpu_class if azure is not None else None,
        "requests": dict(shape.requests),
        "limits": dict(shape.limits),
        "origin": "compute" if own else "azure",
    }


def size_here(of: instance_types.InstanceType) -> Reply:
    """An instance type on this machine, with Azure's sizes."""
    return {
        "name": of.name,
        "vCPUs": of.cores,
        "memoryGB": of.memory_gib,
        "gpus": of.gpus,
        "gpuClass": of.gpu_class,
        "origin": "azure",
    }
