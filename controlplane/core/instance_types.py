"""Azure's instance types: what each of them promises.

Decides which names are known and how many cores, how much memory and which GPUs stand behind them (Azure's virtual
machine sizes that managed online endpoints offer). Must not know what the machine at hand really has.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key


@dataclass(frozen=True, slots=True)
class InstanceType:
    """``memory_gib`` as Azure gives it; ``gpu_class`` such as ``V100`` or ``A100``, None without GPUs."""

    name: str
    cores: int
    memory_gib: float
    gpus: int = 0
    gpu_class: str | None = None


#: Family pattern -> GiB for each core, and the numbers of cores it comes in.
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
    InstanceType("defaultinstancetype", 2, 8),
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


def _all() -> dict[str, InstanceType]:
    family_members = (
        InstanceType(pattern.format(cores), cores, cores * gib)
        for pattern, gib, sizes in _CPU_FAMILIES
        for cores in sizes
    )
    return {key(t.name): t for t in (*family_members, *_SINGLE)}


INSTANCE_TYPES = _all()


def find(name: str) -> InstanceType:
    """The instance type of this name, compared without case.

    Raises Error("BadArgument") for an unknown one, with the nearest known names as the hint.
    """
    found = INSTANCE_TYPES.get(key(name))
    if found is None:
        near = difflib.get_close_matches(key(name), INSTANCE_TYPES, n=3, cutoff=0.7)
        names = ", ".join(INSTANCE_TYPES[n].name for n in near) or "Standard_DS3_v2, Standard_F4s_v2, Standard_NC6s_v3"
        raise Error(
            "BadArgument",
            f"unknown instance type `{name}`",
            target="instance_type",
            hint=f"did you mean {names}?" if near else f"known are for example {names}",
        )
    return found
