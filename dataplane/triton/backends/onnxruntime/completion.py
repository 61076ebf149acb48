"""Completes a model's Triton configuration from what the ONNX file declares.

Decides inputs, outputs, whether Triton batches, and what config.pbtxt may say that this backend
honours. Must not know files, sessions or requests: a configuration (the dict of Triton's
ModelConfig) and tensors in, values out. Source: Triton's document "Model Configuration".

Batching is turned on only where the model says that it is safe: one symbol is the first dimension
of every input and output and of nothing else, and each tensor has more dimensions than that one. An
unnamed first dimension, or one alone (``[N]``), may be a batch or a sequence. Without batching a
client sends the same shapes, so only throughput is lost, and ``max_batch_size`` in config.pbtxt
decides otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from amphitrite.dataplane.triton.backends.onnxruntime import sequences
from amphitrite.dataplane.triton.backends.onnxruntime.sequences import State
from amphitrite.dataplane.triton.backends.onnxruntime.tensors import Tensor, format_shape, triton_type
from amphitrite.schemas.errors import Error

#: The largest batch where config.pbtxt gives none. Triton's own default, 4, would refuse common
#: batches.
DEFAULT_MAX_BATCH_SIZE = 32

_REFUSED = (
    ("batch_input", "batch_input"),
    ("batch_output", "batch_output"),
)


@dataclass(frozen=True, slots=True)
class Completion:
    """``inputs`` and ``outputs`` of clients, as in Triton's configuration. ``remark``: why it
    batches or does not. ``states``: what each sequence keeps."""

    max_batch_size: int
    inputs: tuple[dict[str, Any], ...]
    outputs: tuple[dict[str, Any], ...]
    remark: str
    states: tuple[State, ...] = ()


def complete(config: Mapping[str, Any], tensors: Sequence[Tensor]) -> Completion:
    """The completed parts of ``config``. What it says already stays and is checked against the
    model.

    Raises Error("UserError") for a configuration that contradicts the model or asks for what is not
    honoured here.
    """
    _refuse_unsupported(config)
    given = {kind: {entry["name"]: entry for entry in config.get(kind) or ()} for kind in ("input", "output")}
    for kind, entries in given.items():
        known = [t.name for t in tensors if t.kind == kind]
        for name in entries:
            if name not in known:
                raise _error(f"config.pbtxt names the {kind} '{name}', the model has {known}")
    batcher = sequences.declared(config)
    kept = {state.output for state in batcher.states}

    def is_for_clients(tensor: Tensor) -> bool:
        if tensor.kind == "input":
            return tensor.name not in batcher.provided
        return tensor.name in given["output"] if given["output"] else tensor.name not in kept

    served = [t for t in tensors if t.kind == "input" or is_for_clients(t) or t.name in kept]

    max_batch_size = int(config.get("max_batch_size") or 0)
    if max_batch_size:
        remark = f"batches up to {max_batch_size}, as config.pbtxt says"
        for tensor in served:
            _check_batchable(tensor, max_batch_size)
    elif any(entry.get("dims") for entries in given.values() for entry in entries.values()):
        remark = "no batching, as config.pbtxt gives dims without max_batch_size"
    elif obstacle := batching_obstacle(served):
        remark = f"no batching, because {obstacle}"
    else:
        max_batch_size = DEFAULT_MAX_BATCH_SIZE
        remark = f"batches up to {max_batch_size} along {served[0].shape[0]}"

    sequences.check(config, tensors, batching=max_batch_size > 0)

    def entries_of(kind: str) -> tuple[dict[str, Any], ...]:
        wanted = [t for t in served if t.kind == kind and is_for_clients(t)]
        return tuple(_entry(t, given[kind].get(t.name, {}), max_batch_size > 0) for t in wanted)

    return Completion(max_batch_size, entries_of("input"), entries_of("output"), remark, batcher.states)


def batching_obstacle(tensors: Sequence[Tensor]) -> str | None:
    """Why the first dimension of all tensors may not be a batch; None: it is one."""
    if not any(t.kind == "input" for t in tensors):
        return "the model has no input"
    symbols = set()
    for tensor in tensors:
        if len(tensor.shape) < 2:
            return f"{tensor} has no dimension beside a batch"
        first, *others = tensor.shape
        if not isinstance(first, str):
            return f"the first dimension of {tensor} is {'unnamed' if first is None else 'fixed'}"
        symbols.add(first)
        if first in others:
            return f"{first} stands twice in {tensor}"
    if len(symbols) > 1:
        return f"the first dimensions have different names: {', '.join(sorted(symbols))}"
    for tensor in tensors:
        if symbols & set(tensor.shape[1:]):
            return f"the batch stands inside {tensor}"
    return None


def _refuse_unsupported(config: Mapping[str, Any]) -> None:
    for field, message in _REFUSED:
        if config.get(field):
            raise _error(f"config.pbtxt asks for {message}, which this backend has not")
    if (config.get("model_transaction_policy") or {}).get("decoupled"):
        raise _error("config.pbtxt asks for decoupled answers, which this backend has not")
    if (config.get("optimization") or {}).get("execution_accelerators"):
        raise _error("config.pbtxt asks for execution_accelerators, which this backend has not")
    if (config.get("model_operations") or {}).get("op_library_filename"):
        raise _error("config.pbtxt asks for op_library_filename, which this backend has not")
    for entry in config.get("input") or ():
        for field in ("allow_ragged_batch", "is_shape_tensor", "optional"):
            if entry.get(field):
                raise _error(f"config.pbtxt sets {field} for input '{entry['name']}', which this backend has not")


def _check_batchable(tensor: Tensor, max_batch_size: int) -> None:
    if not tensor.shape and tensor.kind == "output":
        return  # The file may leave an output's rank open. Then each answer is checked.
    if not tensor.shape or isinstance(tensor.shape[0], int):
        raise _error(
            f"config.pbtxt has max_batch_size {max_batch_size}, but {tensor} has no variable first dimension",
            "leave max_batch_size out, or export the model with a symbolic first dimension",
        )


def _entry(tensor: Tensor, given: Mapping[str, Any], batching: bool) -> dict[str, Any]:
    """The configuration of one tensor: ``given``, completed."""
    data_type = triton_type(tensor)
    if given.get("data_type", "TYPE_INVALID") not in ("TYPE_INVALID", data_type):
        raise _error(f"config.pbtxt has {given['data_type']} for {tensor.kind} '{tensor.name}', the model {data_type}")
    shape = tensor.shape[1:] if batching else tensor.shape
    if not tensor.shape:
        # Triton has no tensors without dimensions: a scalar travels as one element. An output
        # without dimensions may also be one whose rank the file leaves open, so it is declared as
        # variable and travels as it is.
        shape = (1,) if tensor.kind == "input" else (None,)
    entry = {**given, "name": tensor.name, "data_type": data_type}
    if given.get("dims"):
        _check_dims(tensor, shape, given)
    elif shape:
        entry["dims"] = [d if isinstance(d, int) else -1 for d in shape]
    else:
        entry |= {"dims": [1], "reshape": {"shape": []}}
    return entry


def _check_dims(tensor: Tensor, shape: tuple[int | str | None, ...], given: Mapping[str, Any]) -> None:
    """Check that dims (or the shape of ``reshape``, if any) agree with the model's. Symbols agree
    with everything."""
    wanted = given["reshape"].get("shape", []) if "reshape" in given else given["dims"]
    if not tensor.shape and tensor.kind == "output":
        return
    numbers = [int(d) for d in wanted]
    agrees = len(numbers) == len(shape) and all(
        not isinstance(d, int) or d == n for d, n in zip(shape, numbers, strict=True)
    )
    if not agrees:
        raise _error(
            f"config.pbtxt has dims {format_shape(tuple(numbers))} for {tensor}, expected {format_shape(shape)}",
            "with max_batch_size the first dimension is left out of dims, without it is part of them",
        )


def _error(message: str, hint: str | None = None) -> Error:
    return Error("UserError", f"{message} ({hint})" if hint else message, hint=hint)
