"""Azure's instance types: what each one offers, and the pod shape that it becomes on a cluster.

Decides which names are known, with their cores, memory and GPUs (the virtual machine sizes of
Azure's managed online endpoints). Must not know what this machine or a cluster really has.

On a cluster an instance requests what a node of the same size can allocate, so one instance fits on
such a node. A GPU type requests no more cores and memory than its GPUs' share of Azure's largest
node with these GPUs, so a node with many GPUs can use all of them. The memory limit equals the
request. There is no CPU limit, because CPU throttling delays answers. A cluster's own instance
types override these shapes.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from amphitrite.controlplane.core.desired.compute_clusters import Compute, PodShape
from amphitrite.controlplane.core.desired.resources import DEFAULT_INSTANCE_TYPE
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key


@dataclass(frozen=True, slots=True)
class InstanceType:
    """``memory_gib``: as Azure lists it. ``gpu_class``: such as ``V100`` or ``A100``, None without
    GPUs."""

    name: str
    cores: int
    memory_gib: float
    gpus: int = 0
    gpu_class: str | None = None


#: Name pattern -> GiB for each core, and the available numbers of cores.
_CPU_FAMILIES: tuple[tuple[str, float, tuple[int, ...]], ...] = (
    ("Standard_D{}_v3", 4, (2, 4, 8, 16, 32, 48, 64)),
    ("Standard_D{}s_v3", 4, (2, 4, 8, 16, 32, 48, 64)),
    ("Standard_D{}_v4", 4, (2, 4, 8, 16, 32, 48, 64)),
    ("Standard_D{}s_v4", 4, (2, 4, 8, 16, 32, 48, 64)),
    ("Standard_D{}_v5", 4, (2, 4, 8, 16, 32, 48, 64, 96)),
    ("Standard_D{}s_v5", 4, (2, 4, 8, 16, 32, 48, 64, 96)),
    ("Standard_D{}as_v4", 4, (2, 4, 8, 16, 32, 48, 64, 96)),
    ("Standard_D{}as_v5", 4, (2, 4, 8, 16, 32, 48, 64, 96)),
    ("Standard_D{}ads_v5", 4, (2, 4, 8, 16, 32, 48, 64, 96)),
    ("Standard_E{}_v3", 8, (2, 4, 8, 16, 20, 32)),
    ("Standard_E{}s_v3", 8, (2, 4, 8, 16, 20, 32)),
    ("Standard_E{}s_v4", 8, (2, 4, 8, 16, 20, 32)),
    ("Standard_E{}s_v5", 8, (2, 4, 8, 16, 20, 32)),
    ("Standard_E{}as_v5", 8, (2, 4, 8, 16, 20, 32)),
    ("Standard_F{}s_v2", 2, (2, 4, 8, 16, 32, 48, 64, 72)),
    ("Standard_FX{}mds", 21, (4, 12, 24, 36, 48)),
    ("Standard_L{}s_v2", 8, (8, 16, 32, 48, 64, 80)),
    ("Standard_L{}s_v3", 8, (8, 16, 32, 48, 64, 80)),
)

_SINGLE: tuple[InstanceType, ...] = (
    InstanceType(DEFAULT_INSTANCE_TYPE, 2, 2),
    InstanceType("Standard_DS1_v2", 1, 3.5),
    InstanceType("Standard_DS2_v2", 2, 7),
    InstanceType("Standard_DS3_v2", 4, 14),
    InstanceType("Standard_DS4_v2", 8, 28),
    InstanceType("Standard_DS5_v2", 16, 56),
    InstanceType("Standard_E48s_v3", 48, 384),
    InstanceType("Standard_E64s_v3", 64, 432),
    InstanceType("Standard_E48s_v5", 48, 384),
    InstanceType("Standard_E64s_v5", 64, 512),
    InstanceType("Standard_NC6s_v2", 6, 112, 1, "P100"),
    InstanceType("Standard_NC12s_v2", 12, 224, 2, "P100"),
    InstanceType("Standard_NC24s_v2", 24, 448, 4, "P100"),
    InstanceType("Standard_NC6s_v3", 6, 112, 1, "V100"),
    InstanceType("Standard_NC12s_v3", 12, 224, 2, "V100"),
    InstanceType("Standard_NC24s_v3", 24, 448, 4, "V100"),
    InstanceType("Standard_NC24rs_v3", 24, 448, 4, "V100"),
    InstanceType("Standard_NC4as_T4_v3", 4, 28, 1, "T4"),
    InstanceType("Standard_NC8as_T4_v3", 8, 56, 1, "T4"),
    InstanceType("Standard_NC16as_T4_v3", 16, 110, 1, "T4"),
    InstanceType("Standard_NC64as_T4_v3", 64, 440, 4, "T4"),
    InstanceType("Standard_NV36ads_A10_v5", 36, 440, 1, "A10"),
    InstanceType("Standard_NV72ads_A10_v5", 72, 880, 2, "A10"),
    InstanceType("Standard_NC24ads_A100_v4", 24, 220, 1, "A100"),
    InstanceType("Standard_NC48ads_A100_v4", 48, 440, 2, "A100"),
    InstanceType("Standard_NC96ads_A100_v4", 96, 880, 4, "A100"),
    InstanceType("Standard_ND96asr_v4", 96, 900, 8, "A100"),
    InstanceType("Standard_ND96amsr_A100_v4", 96, 1900, 8, "A100"),
    InstanceType("Standard_NC40ads_H100_v5", 40, 320, 1, "H100"),
    InstanceType("Standard_NC80adis_H100_v5", 80, 640, 2, "H100"),
    InstanceType("Standard_ND96isr_H100_v5", 96, 1900, 8, "H100"),
    InstanceType("Standard_ND96isr_H200_v5", 96, 1850, 8, "H200"),
    InstanceType("Standard_ND40rs_v2", 40, 672, 8, "V100"),
)


def _instance_types() -> dict[str, InstanceType]:
    family_members = (
        InstanceType(pattern.format(cores), cores, cores * gib)
        for pattern, gib, sizes in _CPU_FAMILIES
        for cores in sizes
    )
    return {key(t.name): t for t in (*family_members, *_SINGLE)}


INSTANCE_TYPES = _instance_types()


#: The resource of NVIDIA's device plugin for whole GPUs. GPU partitions (MIG) have their own
#: resource names, which a cluster's own instance type can request.
GPU = "nvidia.com/gpu"

#: NVIDIA's GPU operator and cloud providers taint nodes with GPUs, to keep other pods away.
_GPU_TOLERATION: Mapping[str, str] = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}

#: GPUs of compute capability 6.0 and 7.0, and a Triton release for them. Release 24.10 supports 6.0
#: and later; 25.01 and later need 7.5 (Triton's release notes, "GPU Requirements").
_OLD_GPUS, _TAG_FOR_OLD_GPUS = frozenset({"P100", "V100"}), "24.10-py3"

#: As in Azure ML on Kubernetes (its page how-to-manage-kubernetes-instance-types).
_DEFAULT = PodShape(
    DEFAULT_INSTANCE_TYPE,
    requests=(("cpu", "100m"), ("memory", "2Gi")),
    limits=(("cpu", "2"), ("memory", "2Gi")),
)

#: The shares of a node that the kubelet and the system reserve, in steps: (up to this size, share).
#: Cores up to the 1st, 2nd, 4th and beyond; memory up to 4, 8, 16, 128 GiB and beyond. GKE
#: documents this rule; AKS and EKS are close to it.
_RESERVED_CORES = ((1.0, 0.06), (2.0, 0.01), (4.0, 0.005), (float("inf"), 0.0025))
_RESERVED_GIB = ((4.0, 0.25), (8.0, 0.20), (16.0, 0.10), (128.0, 0.06), (float("inf"), 0.02))
#: The share of the remainder for DaemonSets (network, device plugins, exporters).
_DAEMON_SETS = 0.05


def find(name: str) -> InstanceType:
    """The instance type of this name, compared without case.

    Raises Error("BadArgument") for an unknown name, with the nearest known names as the hint.
    """
    match = INSTANCE_TYPES.get(key(name))
    if match is None:
        raise _unknown(name, (t.name for t in INSTANCE_TYPES.values()), "")
    return match


def shape(name: str, compute: Compute) -> PodShape:
    """The pod shape of an instance type on ``compute``, whose own types override Azure's.

    Names are compared without case. Raises Error("BadArgument") as :func:`find` does.
    """
    own = {key(one.name): one for one in compute.instance_types}
    match = own.get(key(name)) or azure_shapes().get(key(name))
    if match is None:
        names = [one.name for one in (*own.values(), *azure_shapes().values())]
        raise _unknown(name, names, f" of compute {compute.name}")
    return match


def shapes(compute: Compute) -> tuple[PodShape, ...]:
    """All instance types of a cluster: its own, then those of Azure's that it does not override."""
    own = {key(one.name) for one in compute.instance_types}
    return (*compute.instance_types, *(one for name, one in azure_shapes().items() if name not in own))


@cache
def azure_shapes() -> Mapping[str, PodShape]:
    """The pod shapes of Azure's types, by lower-case name."""
    return {name: _DEFAULT if name == DEFAULT_INSTANCE_TYPE else _azure_shape(t) for name, t in INSTANCE_TYPES.items()}


def _azure_shape(of: InstanceType) -> PodShape:
    cores, gib = _allocatable(of.cores, _RESERVED_CORES), _allocatable(of.memory_gib, _RESERVED_GIB)
    if not of.gpus:
        return PodShape(of.name, (("cpu", _milli(cores)), ("memory", _mebi(gib))), (("memory", _mebi(gib)),))
    alike = [t for t in INSTANCE_TYPES.values() if t.gpu_class == of.gpu_class]
    most = max(t.gpus for t in alike)
    for node in (t for t in alike if t.gpus == most):
        cores = min(cores, _allocatable(node.cores, _RESERVED_CORES) * of.gpus / most)
        gib = min(gib, _allocatable(node.memory_gib, _RESERVED_GIB) * of.gpus / most)
    gpus = (GPU, str(of.gpus))
    return PodShape(
        of.name,
        requests=(("cpu", _milli(cores)), ("memory", _mebi(gib)), gpus),
        limits=(("memory", _mebi(gib)), gpus),
        scheduling={"tolerations": [dict(_GPU_TOLERATION)]},
        triton_tag=_TAG_FOR_OLD_GPUS if of.gpu_class in _OLD_GPUS else None,
    )


def _allocatable(size: float, reserved: Iterable[tuple[float, float]]) -> float:
    """What a node of this size has for one pod, besides the pods that run on every node."""
    left, below = size, 0.0
    for up_to, share in reserved:
        left -= max(0.0, min(size, up_to) - below) * share
        below = up_to
    return left * (1 - _DAEMON_SETS)


def _milli(cores: float) -> str:
    """Rounded down to 100 millicores, which keeps tables readable."""
    return f"{max(100, int(cores * 10) * 100)}m"


def _mebi(gib: float) -> str:
    """Rounded down to 256 MiB."""
    return f"{max(256, int(gib * 4) * 256)}Mi"


def _unknown(name: str, known_names: Iterable[str], where: str) -> Error:
    by_key = {key(one): one for one in known_names}
    nearest = [by_key[n] for n in difflib.get_close_matches(key(name), by_key, n=3, cutoff=0.7)]
    examples = ", ".join(nearest) or "Standard_DS3_v2, Standard_F4s_v2, Standard_NC6s_v3"
    hint = f"did you mean {examples}?" if nearest else f"known names are, for example, {examples}"
    return Error("BadArgument", f"unknown instance type `{name}`{where}", target="instance_type", hint=hint)
