"""Descriptions of what serves an instance's models.

Decides the engine's description and the notes about images and GPUs. Must not know processes or
records.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from amphitrite.controlplane.core.desired import instance_types
from amphitrite.controlplane.core.desired.containers import Container
from amphitrite.controlplane.core.desired.resources import WorkloadSpec
from amphitrite.dataplane.table.routing_table import InstanceAddress
from amphitrite.dataplane.triton import http_api

#: The log line of our ONNX Runtime backend after it has loaded a model.
_ENGINE = re.compile(r"engine of (?P<model>\S+): (?P<engine>onnxruntime [^\"\n]+)")


def describe(version: str, address: InstanceAddress, models: Sequence[str], log: str, timeout_s: float) -> str:
    """Such as ``Triton 2.51.0 (onnxruntime 1.31.1, CPU)``: for each model its log line's engine if
    there is one, otherwise the name of its backend."""
    by_model = {match["model"]: match["engine"] for match in _ENGINE.finditer(log)}
    engines = {by_model.get(model) or http_api.backend(address, model, timeout_s) for model in models}
    names = "; ".join(sorted(engine for engine in engines if engine))
    return f"Triton {version} ({names})" if names else f"Triton {version}"


def note(workload: WorkloadSpec, engine: str | None = None) -> str | None:
    """What a user should know about how a workload is served here, None for nothing.

    ``engine``: see :func:`describe`; None while it is unknown.
    """
    notes = [_image_note(workload.container, engine), _gpu_note(workload.instance_type, engine)]
    return "; ".join(one for one in notes if one) or None


def _image_note(container: Container | None, engine: str | None) -> str | None:
    """This machine does not run the image, so its version and additions have no effect."""
    if container is None:
        return None
    version = engine.partition(" (")[0] if engine else "Triton"
    return f"image {container.image} is not used on this machine; the machine's own {version} serves instead"


def _gpu_note(instance_type: str, engine: str | None) -> str | None:
    """That this machine has no GPU or, once ``engine`` is known, that the engine does not
    use it."""
    type_ = instance_types.find(instance_type)
    if not type_.gpus:
        return None
    offer = f"{type_.name} has {type_.gpus} x {type_.gpu_class}"
    if not gpu_present():
        return f"{offer}, but this machine has no GPU, so models run on the CPU"
    if engine and "CPU" in engine:
        return f"{offer}, but onnxruntime has no CUDA provider here, so models run on the CPU"
    return None


def gpu_present() -> bool:
    """Whether the driver shows an NVIDIA GPU on this machine."""
    return any(Path("/dev").glob("nvidia[0-9]*"))


def cores(instance_type: str) -> int:
    """How many cores a model may use: the instance type's, but no more than this machine has."""
    return max(1, min(instance_types.find(instance_type).cores, len(os.sched_getaffinity(0))))


def uses_gpus(instance_type: str) -> bool:
    """Whether the instance type has GPUs. Others must not use this machine's."""
    return instance_types.find(instance_type).gpus > 0
