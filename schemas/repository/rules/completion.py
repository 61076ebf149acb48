"""How our ``onnxruntime`` backend completes a configuration from an ONNX graph.

Decides the same as ``dataplane/triton/backends/onnxruntime/completion.py``, which raises at the
first contradiction; this module reports all of them with positions. A test compares the two. Must
not know files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amphitrite.schemas.repository.config.syntax_tree import Message
from amphitrite.schemas.repository.files.findings import closest, listed
from amphitrite.schemas.repository.models.rule_report import Report
from amphitrite.schemas.repository.onnx import graph_file
from amphitrite.schemas.repository.onnx.graph_file import Dimension, format_shape
from amphitrite.schemas.repository.rules import sequences
from amphitrite.schemas.repository.rules.tensors import Signature, Tensor

#: The largest batch if config.pbtxt does not set one.
DEFAULT_MAX_BATCH_SIZE = 32
_REFUSED = {
    "batch_input": "batch_input",
    "batch_output": "batch_output",
}
_INPUT_FLAGS = ("allow_ragged_batch", "is_shape_tensor", "optional")
_LEVELS = (-1, 0, 1, 2)
_THREADS = ("intra_op_thread_count", "inter_op_thread_count", "execution_mode")


@dataclass(frozen=True, slots=True)
class CompletionResult:
    """``signature``: None if ONNX Runtime infers part of it, or if there are problems."""

    signature: Signature | None


def complete(report: Report, config: Message, graph: graph_file.Graph, path: str) -> CompletionResult:
    """Complete the inputs and outputs of ``config`` from ``graph``.

    Reports what contradicts the graph of the file ``path``, and what the backend does not support.
    """
    before = len(report.findings)
    _refuse(report, config)
    _check_options(report, config)
    entries = {kind: {e.text("name"): e for e in config.children(kind)} for kind in ("input", "output")}
    for kind, graph_tensors in (("input", graph.inputs), ("output", graph.outputs)):
        names = [tensor.name for tensor in graph_tensors]
        for name, entry in entries[kind].items():
            if name not in names and not (entry.incomplete and not name):
                _report_unknown_tensor(report, entry, kind, name, names, graph)
    provided, kept = sequences.provided(config), sequences.kept(config)

    def is_for_clients(tensor: graph_file.Tensor) -> bool:
        if tensor.kind == "input":
            return tensor.name not in provided
        return tensor.name in entries["output"] if entries["output"] else tensor.name not in kept

    served_tensors = [t for t in graph.tensors if t.kind == "input" or is_for_clients(t) or t.name in kept]
    maximum, certain = _batch(report, config, served_tensors, entries)
    sequences.check(report, config, graph, batching=maximum > 0 if certain else None)
    tensors: dict[str, list[Tensor]] = {"input": [], "output": []}
    for tensor in served_tensors:
        if not is_for_clients(tensor):
            continue
        declared = entries[tensor.kind].get(tensor.name)
        if tensor.type is None:
            _report_unsupported_type(report, tensor, declared, path)
            continue
        dims = _entry(report, tensor, declared, maximum)
        if dims is None:
            certain = False
        tensors[tensor.kind].append(Tensor(tensor.name, tensor.type, dims or (), False, declared))
    if not certain or len(report.findings) > before:
        return CompletionResult(None)
    return CompletionResult(Signature(tuple(tensors["input"]), tuple(tensors["output"]), maximum))


def cannot_batch(tensors: Sequence[graph_file.Tensor]) -> bool:
    """Whether the first dimension of the tensors cannot be the batch."""
    if not any(t.kind == "input" for t in tensors):
        return True
    symbols = set()
    for tensor in tensors:
        shape = _shape(tensor)
        if len(shape) < 2 or not isinstance(shape[0], str) or shape[0] in shape[1:]:
            return True
        symbols.add(shape[0])
    return len(symbols) > 1 or any(symbols & set(_shape(tensor)[1:]) for tensor in tensors)


def _batch(
    report: Report, config: Message, served_tensors: Sequence[graph_file.Tensor], entries: dict[str, dict[str, Message]]
) -> tuple[int, bool]:
    """(the largest batch, whether that is certain)."""
    maximum = max(0, config.number("max_batch_size"))
    if maximum:
        for tensor in served_tensors:
            _check_batchable(report, config, tensor, maximum)
        return maximum, True
    if any(entry.has("dims") for by_name in entries.values() for entry in by_name.values()):
        return 0, True
    # ONNX Runtime infers open shapes of outputs, and may find a batch dimension that is not
    # declared.
    certain = all(
        tensor.shape is not None and None not in tensor.shape for tensor in served_tensors if tensor.kind == "output"
    )
    return (0 if cannot_batch(served_tensors) else DEFAULT_MAX_BATCH_SIZE), certain


def _check_batchable(report: Report, config: Message, tensor: graph_file.Tensor, maximum: int) -> None:
    shape = _shape(tensor)
    if not shape and tensor.kind == "output":
        return  # ONNX Runtime infers the shape; if it stays open, the backend checks each response.
    if not shape or isinstance(shape[0], int):
        report.field(
            config, "max_batch_size", "batch-dimension",
            f"the model cannot batch: {tensor} has no variable first dimension", found=str(maximum), allowed="0",
            fix="remove max_batch_size, or export the model with a symbolic first dimension",
        )  # fmt: skip


def _entry(report: Report, tensor: graph_file.Tensor, entry: Message | None, maximum: int) -> tuple[int, ...] | None:
    """The dims of a tensor; None if they are unknown."""
    full = _shape(tensor)
    shape = full[1:] if maximum else full
    if not full:
        shape = (1,) if tensor.kind == "input" else (None,)
    if entry is not None:
        if entry.number("data_type") and entry.enum_name("data_type") != tensor.type:
            report.field(
                entry,
                "data_type",
                "data-type",
                f"the {tensor.kind} `{tensor.name}` of the model has the type {tensor.type}",
                found=entry.enum_name("data_type"),
                allowed=tensor.type,
                fix=f"write data_type: {tensor.type}",
            )
        if entry.has("dims"):
            _check_dims(report, tensor, shape, entry, maximum)
            return entry.numbers("dims")
    if tensor.kind == "output" and (tensor.shape is None or any(not isinstance(d, int) for d in shape)):
        known = tensor.shape is not None and bool(full)
        return tuple(d if isinstance(d, int) else -1 for d in shape) if known and None not in shape else None
    return tuple(d if isinstance(d, int) else -1 for d in shape) if shape else (1,)


def _check_dims(
    report: Report, tensor: graph_file.Tensor, shape: tuple[Dimension, ...], entry: Message, maximum: int
) -> None:
    """Check that dims, or the shape of ``reshape``, match the model's shape.

    A symbol matches any number.
    """
    if not _shape(tensor) and tensor.kind == "output":
        return
    reshape = entry.child("reshape")
    written = reshape.numbers("shape") if reshape is not None else entry.numbers("dims")
    if (reshape is not None and reshape.incomplete) or entry.incomplete:
        return
    matches = len(written) == len(shape) and all(
        not isinstance(d, int) or d == n for d, n in zip(shape, written, strict=True)
    )
    if matches:
        return
    expected = ", ".join(str(d) if isinstance(d, int) else "-1" for d in shape)
    message = f"the {tensor.kind} `{tensor.name}` of the model has the shape {format_shape(tensor.shape or ())}"
    with_batch = len(written) == len(shape) + 1 and maximum
    without_batch = len(written) + 1 == len(shape) and not maximum and not isinstance(shape[0], int)
    report.field(
        entry if reshape is None else reshape,
        "dims" if reshape is None else "shape",
        "dims",
        message,
        found=format_shape(written),
        allowed=format_shape(shape) + (" (with max_batch_size, without the batch dimension)" if maximum else ""),
        fix=f"write {'dims' if reshape is None else 'shape'}: [ {expected} ]"
        + (", or remove max_batch_size" if with_batch else ", or add max_batch_size" if without_batch else ""),
        index=0 if (reshape or entry).has("dims" if reshape is None else "shape") else None,
    )


def _shape(tensor: graph_file.Tensor) -> tuple[Dimension, ...]:
    """The shape as ONNX Runtime reports it: a tensor without a shape counts as a scalar."""
    return tensor.shape or ()


def _report_unknown_tensor(
    report: Report, entry: Message, kind: str, name: str, names: Sequence[str], graph: graph_file.Graph
) -> None:
    other = graph.outputs if kind == "input" else graph.inputs
    is_other = any(tensor.name == name for tensor in other)
    report.field(
        entry, "name", "unknown-tensor", f"the model has no {kind} `{name}`", found=f'"{name}"', allowed=listed(names),
        near=closest(name, names),
        fix=f"move it to `{'output' if kind == 'input' else 'input'}`" if is_other else None,
    )  # fmt: skip


def _report_unsupported_type(report: Report, tensor: graph_file.Tensor, entry: Message | None, path: str) -> None:
    text = f"{tensor.kind} `{tensor.name}` has an unsupported type: {tensor.type_word}"
    is_tensor = not tensor.type_word.startswith(("a ", "an "))
    fix = (
        f"cast it in the model to one of {', '.join(sorted(set(graph_file.TYPES.values())))}"
        if is_tensor
        else "export it with tensors only (skl2onnx: zipmap=False), or list only tensors as outputs in config.pbtxt"
    )
    if entry is None:
        report.file(path, "data-type", text, fix=fix)
    else:
        report.field(entry, "data_type", "data-type", text, fix=fix)


def _refuse(report: Report, config: Message) -> None:
    def refuse(message: Message, field: str, words: str) -> None:
        report.field(
            message,
            field,
            "not-honoured",
            f"this server's ONNX backend does not support {words}",
            fix=f"remove `{field}`",
        )

    for field, words in _REFUSED.items():
        if config.has(field):
            refuse(config, field, words)
    policy = config.child("model_transaction_policy")
    if policy and policy.number("decoupled"):
        refuse(policy, "decoupled", "decoupled responses")
    optimization = config.child("optimization")
    if optimization and optimization.has("execution_accelerators"):
        refuse(optimization, "execution_accelerators", "execution accelerators")
    operations = config.child("model_operations")
    if operations and operations.has("op_library_filename"):
        refuse(operations, "op_library_filename", "custom operators from a library")
    for entry in config.children("input"):
        for flag in _INPUT_FLAGS:
            if entry.number(flag):
                refuse(entry, flag, f"`{flag}`")


def _check_options(report: Report, config: Message) -> None:
    optimization = config.child("optimization")
    graph = optimization.child("graph") if optimization else None
    if graph and graph.number("level") not in _LEVELS:
        report.field(graph, "level", "graph-level", "unknown level", found=str(graph.number("level")),
                     allowed=", ".join(map(str, _LEVELS)))  # fmt: skip
    for key, value in config.mapping("parameters").items():
        text = value.message.text("string_value")
        if key in _THREADS and text and not _is_number(text):
            report.field(
                value.message, "string_value", "parameter", f"`{key}` must be a whole number", found=f'"{text}"'
            )


def _is_number(text: str) -> bool:
    try:
        int(text)
    except ValueError:
        return False
    return True
