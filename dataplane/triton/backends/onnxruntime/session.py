"""One ONNX Runtime session: opened, described, run.

Decides providers, threads and optimisation. Must not know Triton's objects, requests or batching.
Source: the README of Triton's ``onnxruntime_backend``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import onnxruntime  # type: ignore[import-untyped]

from amphitrite.dataplane.triton.backends.onnxruntime.tensors import Array, Tensor
from amphitrite.schemas.errors import Error

#: The values of ``optimization { graph { level } }``, as Triton's own backend of this name reads
#: them; 0: not set.
_LEVELS = {
    0: onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
    -1: onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    1: onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    2: onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
}

_CPUINFO = Path("/proc/cpuinfo")
#: x86's instructions that add products of 8-bit numbers in 32 bits, as Linux calls them.
_VNNI = frozenset({"avx512_vnni", "avx_vnni"})


class Session:
    """A loaded model. ``tensors``: its inputs and outputs. ``engine``: what runs it."""

    def __init__(self, path: Path, config: Mapping[str, Any], device: int | None) -> None:
        """``device``: the GPU to use; None: the CPU. Raises Error("UserError") when the file cannot
        be loaded."""
        providers: list[Any] = ["CPUExecutionProvider"]
        if device is not None and "CUDAExecutionProvider" in onnxruntime.get_available_providers():
            providers.insert(0, ("CUDAExecutionProvider", {"device_id": device}))
        try:
            self._session = onnxruntime.InferenceSession(path, options(config), providers=providers)
        except Exception as exc:  # ONNX Runtime's exceptions have no other class in common.
            raise Error("UserError", f"ONNX Runtime cannot load {path.name}: {_first_line(exc)}") from exc
        declared = [("input", t) for t in self._session.get_inputs()]
        declared += [("output", t) for t in self._session.get_outputs()]
        self.tensors = tuple(Tensor(kind, t.name, t.type, tuple(t.shape)) for kind, t in declared)
        gpu = "CUDAExecutionProvider" in self._session.get_providers()
        self.engine = f"onnxruntime {onnxruntime.__version__}, {'GPU' if gpu else 'CPU'}"

    def run(self, wanted: Sequence[str], inputs: Mapping[str, Array]) -> Sequence[Array]:
        """The outputs in the order of ``wanted``. Raises Error("ScoringFailed") with ONNX Runtime's
        message."""
        try:
            outputs: list[Array] = self._session.run(list(wanted), dict(inputs))
        except Exception as exc:  # As above.
            raise Error("ScoringFailed", f"ONNX Runtime: {_first_line(exc)}") from exc
        return outputs


def options(config: Mapping[str, Any]) -> onnxruntime.SessionOptions:
    """Session options from a model's Triton configuration and AMPHITRITE_CORES (the cores of the
    instance type). Raises Error("UserError") for values that are not possible."""
    parameters = {k: v.get("string_value", "") for k, v in (config.get("parameters") or {}).items()}
    chosen = onnxruntime.SessionOptions()
    level = int(((config.get("optimization") or {}).get("graph") or {}).get("level") or 0)
    if level not in _LEVELS:
        raise Error("UserError", f"config.pbtxt has graph level {level}, known are {sorted(_LEVELS)}")
    chosen.graph_optimization_level = _LEVELS[level]
    chosen.intra_op_num_threads = _number(parameters, "intra_op_thread_count") or _threads(config)
    chosen.inter_op_num_threads = _number(parameters, "inter_op_thread_count") or 1
    if _number(parameters, "execution_mode"):
        chosen.execution_mode = onnxruntime.ExecutionMode.ORT_PARALLEL
    # Spinning threads would take the cores from Triton, the proxy and the other instances of a
    # small machine.
    chosen.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if _overflows_here():
        chosen.add_session_config_entry("session.x64quantprecision", "1")
    chosen.log_severity_level = 3
    return chosen


def overflows(cpuinfo: Iterable[str]) -> bool:
    """Whether int8 models need ONNX Runtime's exact kernels on the CPU of this ``/proc/cpuinfo``,
    given by lines.

    Without VNNI the usual kernels add products of 8-bit numbers in 16 bits. The sums saturate, and
    the answers differ from those of other CPUs. The exact kernels are slower. With VNNI they would
    cost time and change nothing. On other architectures than x86 ONNX Runtime ignores the setting.
    """
    flags = next((line for line in cpuinfo if line.startswith("flags")), "")
    return _VNNI.isdisjoint(flags.split())


def _overflows_here() -> bool:
    try:
        with _CPUINFO.open(encoding="utf-8", errors="replace") as lines:
            return overflows(lines)
    except OSError:
        return True  # Right rather than fast.


def _threads(config: Mapping[str, Any]) -> int:
    """The cores of this instance, divided among the model's copies (``instance_group``)."""
    usable = len(os.sched_getaffinity(0))
    cores = min(int(os.environ.get("AMPHITRITE_CORES") or usable), usable)
    copies = sum(int(group.get("count") or 1) for group in config.get("instance_group") or ()) or 1
    return max(1, cores // copies)


def _number(parameters: Mapping[str, str], name: str) -> int:
    text = parameters.get(name) or "0"
    try:
        return int(text)
    except ValueError:
        raise Error("UserError", f"config.pbtxt has {name} '{text}', which is not a number") from None


def _first_line(exc: BaseException) -> str:
    """The message on one line, as Triton's log needs it, and at most 500 characters of it."""
    return " ".join(str(exc).split())[:500]
