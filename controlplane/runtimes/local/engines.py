"""What really serves an instance's models, in words.

Decides the engine's description and the notes about images and GPUs. Must not know processes or records.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from amphitrite.controlplane.core.desired import instance_types
from amphitrite.controlplane.core.desired.containers import Container
from amphitrite.controlplane.core.desired.resources import WorkloadSpec
from amphitrite.dataplane.table.routing_table import Address
from amphitrite.dataplane.triton import http_api

#: What our ONNX Runtime backend writes to the log when it has loaded a model.
_ENGINE = re.compile(r"engine of (?P<model>\S+): (?P<engine>onnxruntime [^\"\n]+)")


def describe(version: str, address: Address, models: Sequence[str], log: str, timeout_s: float) -> str:
    """Such as ``Triton 2.51.0 (onnxruntime 1.31.1, CPU)``: for each model its own words if it has any, else its
    backend's name."""
    told = {match["model"]: match["engine"] for match in _ENGINE.finditer(log)}
    engines = {told.get(model) or http_api.backend(address, model, timeout_s) for model in models}
    names = "; ".join(sorted(engine for engine in engines if engine))
    return f"Triton {version} ({names})" if names else f"Triton {version}"


def note(workload: WorkloadSpec, engine: str | None = None) -> str | None:
    """What a user must know of how a workload is served here, None for nothing. ``engine``: see :func:`describe`, None
    while it is not known."""
    told = [_image_note(workload.container, engine), _gpu_note(workload.instance_type, engine)]
    return "; ".join(one for one in told if one) or None


def _image_note(container: Container | None, engine: str | None) -> str | None:
    """Nobody runs the image itself, so its version, and what it was made of besides Triton, do not count."""
    if container is None:
        return None
    version = engine.partition(" (")[0] if engine else "Triton"
    return f"image {container.image} is not run on this machine: its own {version} serves in place of it"


def _gpu_note(instance_type: str, engine: str | None) -> str | None:
    """That this machine has no GPU, or (once ``engine`` is known) that what serves does not use it."""
    wanted = instance_types.find(instance_type)
    if not wanted.gpus:
        return None
    promised = f"{wanted.name} promises {wanted.gpus} x {wanted.gpu_class}"
    if not gpu_present():
        return f"{promised}; this machine has no GPU, so it runs on the CPU"
    if engine and "CPU" in engine:
        return f"{promised}; onnxruntime has no CUDA provider here, so it runs on the CPU"
    return None


def gpu_present() -> bool:
    """Whether the driver shows an NVIDIA GPU."""
    return any(Path("/dev").glob("nvidia[0-9]*"))


def cores(instance_type: str) -> int:
    """How many cores a model may use: the instance type's, as far as this machine has them."""
    return max(1, min(instance_types.find(instance_type).cores, len(os.sched_getaffinity(0))))


def uses_gpus(instance_type: str) -> bool:
    """Whether the instance type has GPUs; the others must not touch this machine's."""
    return instance_types.find(instance_type).gpus > 0
