"""The resources of the server's container: the instance type, the deployment's own, and shared
memory.

Decides which of them wins, and which values Kubernetes needs in both requests and limits. Must not
know pods or nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from amphitrite.controlplane.core.capacity.node_capacity import quantity
from amphitrite.controlplane.core.desired.compute_clusters import PodShape
from amphitrite.controlplane.core.desired.resources import PodSettings
from amphitrite.controlplane.runtimes.kubernetes.workloads.model_facts import ModelFacts
from amphitrite.schemas.errors import Error

MIB = 1024 * 1024

#: Triton's Python backend communicates with its processes through regions in /dev/shm, which has 64
#: MiB in a container by default.
SHARED_MEMORY_FLOOR = 256 * MIB
SHARED_MEMORY_EACH = 64 * MIB
SHARED_MEMORY_SLACK = 64 * MIB


def shared_memory(facts: ModelFacts | None, gpus: int) -> int:
    """Bytes of /dev/shm: 64 MiB for each Python process and 64 MiB more, at least 256 MiB."""
    processes = facts.python_instances(gpus) if facts is not None else 0
    return max(SHARED_MEMORY_FLOOR, SHARED_MEMORY_EACH * processes + SHARED_MEMORY_SLACK)


def demand(shape: PodShape, settings: PodSettings | None, facts: ModelFacts | None) -> PodShape:
    """The instance type with all resources that a pod of this deployment requests, for the pod and
    for the capacity check.

    The deployment's ``resources`` override the instance type's. The memory limit equals the request
    unless it is set, and both grow by the shared memory, which counts as the pod's. The CPU has no
    limit unless one is set. Devices (``nvidia.com/gpu``, MIG) have equal requests and limits.
    Raises Error("InvalidDeploymentSpec").
    """
    overrides = settings or PodSettings()
    requests = {**dict(shape.requests), **dict(overrides.requests)}
    limits = {**dict(shape.limits), **dict(overrides.limits)}
    own = {**dict(overrides.requests), **dict(overrides.limits)}
    for name in {*requests, *limits}:
        if "/" in name:
            count = own.get(name) or limits.get(name) or requests[name]
            requests[name] = limits[name] = count
    if "memory" in requests and "memory" not in dict(overrides.limits):
        limits["memory"] = requests["memory"]
    elif "memory" in limits and "memory" not in requests:
        requests["memory"] = limits["memory"]
    if "cpu" in dict(overrides.requests) and "cpu" not in dict(overrides.limits):
        limits.pop("cpu", None)
    extra = shared_memory(facts, gpus(requests))
    for side in (requests, limits):
        if "memory" in side:
            side["memory"] = format_bytes(_read("memory", side["memory"]) + extra)
    parsed_limits = {name: _read(name, text) for name, text in limits.items()}
    for name, text in requests.items():
        if _read(name, text) > parsed_limits.get(name, _read(name, text)):
            message = f"resources request {text} of {name}, which is more than the limit {limits[name]}"
            raise Error("InvalidDeploymentSpec", message, target="resources", hint="raise the limit")
    return replace(shape, requests=tuple(sorted(requests.items())), limits=tuple(sorted(limits.items())))


def gpus(requests: Mapping[str, str]) -> int:
    """The number of NVIDIA devices that a pod requests, whole GPUs and MIG slices."""
    return sum(int(_read(name, text)) for name, text in requests.items() if name.startswith("nvidia.com/"))


def format_bytes(value: Fraction | int) -> str:
    """Bytes in Kubernetes' notation, as MiB if that is exact."""
    whole = -(-value // 1)
    return f"{whole // MIB}Mi" if whole % MIB == 0 else str(whole)


def _read(name: str, text: str) -> Fraction:
    try:
        return quantity(text)
    except ValueError as exc:
        raise Error("InvalidDeploymentSpec", f"resources: {name}: {exc}", target="resources") from exc
