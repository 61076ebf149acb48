"""Rules for sequences of ONNX models: whether the graph has the controls and states of a
configuration.

Decides the same as ``dataplane/triton/backends/onnxruntime/sequences.py``, which raises at the
first contradiction; this module reports all of them with positions. Must not know files, or the
rules that hold without a graph (``batching``).
"""

from __future__ import annotations

from collections.abc import Sequence

from amphitrite.schemas.repository.config.syntax_tree import Message
from amphitrite.schemas.repository.files.findings import closest, listed
from amphitrite.schemas.repository.models.rule_report import Report
from amphitrite.schemas.repository.onnx.graph_file import Dimension, Graph, Tensor, format_shape

_VALUES = {"int32_false_true": "TYPE_INT32", "fp32_false_true": "TYPE_FP32", "bool_false_true": "TYPE_BOOL"}
_UNSUPPORTED = ("use_same_buffer_for_input_output", "use_growable_memory")


def provided(config: Message) -> set[str]:
    """The inputs that no client sends: controls and states."""
    controls = {entry.text("name") for entry in _children(config, "control_input") if entry.has("control")}
    return controls | {entry.text("input_name") for entry in _children(config, "state")}


def kept(config: Message) -> set[str]:
    """The outputs that are the next request's states."""
    return {entry.text("output_name") for entry in _children(config, "state")}


def check(report: Report, config: Message, graph: Graph, *, batching: bool | None) -> None:
    """Report problems. ``batching``: whether the first dimension is the batch; None: unknown."""
    batcher = config.child("sequence_batching")
    if batcher is None:
        return
    if batcher.number("iterative_sequence"):
        _refuse(report, batcher, "iterative_sequence", "iterative sequences")
    for entry in batcher.children("control_input"):
        for control in entry.children("control"):
            field = next((name for name in _VALUES if control.has(name)), "data_type")
            data_type = _VALUES.get(field) or control.enum_name("data_type")
            tensor = _named(report, entry, "name", graph.inputs, "input", "sequence-control")
            if tensor is not None:
                _check_type(report, control, field, tensor, data_type, "sequence-control")
                _check_control(report, entry, tensor, batching)
    _check_names(report, config, batcher)
    for entry in batcher.children("state"):
        if not entry.incomplete:
            _check_state(report, entry, graph, batching)


def _check_names(report: Report, config: Message, batcher: Message) -> None:
    """Report what stands twice."""
    controls = {entry.text("name") for entry in batcher.children("control_input") if entry.has("control")}
    seen = {"input_name": controls, "output_name": set[str]()}
    for entry in batcher.children("state"):
        for field, names in seen.items():
            if (name := entry.text(field)) in names:
                report.field(entry, field, "sequence-state", f"`{name}` stands twice in sequence_batching",
                             fix="use a different tensor for each control and each state")  # fmt: skip
            names.add(name)
    for entry in config.children("input"):
        if (name := entry.text("name")) in seen["input_name"]:
            report.field(entry, "name", "sequence-state", f"`{name}` is provided by sequence_batching, not by clients",
                         fix="remove it from `input`, or from sequence_batching")  # fmt: skip


def _check_control(report: Report, entry: Message, tensor: Tensor, batching: bool | None) -> None:
    shape = _without_batch(tensor, batching)
    if shape is not None and shape != (1,):
        report.field(
            entry, "name", "sequence-control",
            f"the input `{tensor.name}` of the model has the shape {format_shape(tensor.shape)}",
            found=format_shape(shape), allowed="[1]" + (" (beside the batch dimension)" if batching else ""),
            fix="export the model with one value for each sequence",
        )  # fmt: skip


def _check_state(report: Report, entry: Message, graph: Graph, batching: bool | None) -> None:
    for field in _UNSUPPORTED:
        if entry.number(field):
            _refuse(report, entry, field, f"`{field}`")
    dims = entry.numbers("dims")
    for field, tensors, kind in (("input_name", graph.inputs, "input"), ("output_name", graph.outputs, "output")):
        tensor = _named(report, entry, field, tensors, kind, "sequence-state")
        if tensor is None:
            continue
        _check_type(report, entry, "data_type", tensor, entry.enum_name("data_type"), "sequence-state")
        shape = _without_batch(tensor, batching)
        if shape is not None and not _fits(shape, dims):
            report.field(
                entry, "dims" if dims else "", "sequence-state",
                f"the {kind} `{tensor.name}` of the model has the shape {format_shape(tensor.shape)}",
                found=format_shape(dims), allowed=format_shape(shape),
                fix=f"write dims: [ {', '.join(str(d) if isinstance(d, int) else '-1' for d in shape)} ]",
            )  # fmt: skip
    first = tuple(1 if d == -1 else d for d in dims)
    for initial in entry.children("initial_state"):
        if not initial.incomplete and initial.numbers("dims") != first:
            report.field(
                initial, "dims" if initial.has("dims") else "", "sequence-state",
                "a state begins with its dims, and with 1 for each of variable size",
                found=format_shape(initial.numbers("dims")), allowed=format_shape(first),
                fix=f"write dims: [ {', '.join(map(str, first))} ]",
            )  # fmt: skip


def _named(
    report: Report, entry: Message, field: str, tensors: Sequence[Tensor], kind: str, code: str
) -> Tensor | None:
    """The tensor that ``field`` names; None, with a finding, if there is none."""
    name, names = entry.text(field), [tensor.name for tensor in tensors]
    if name in names:
        return tensors[names.index(name)]
    if name or not entry.incomplete:
        report.field(entry, field if name else "", code, f"the model has no {kind} `{name}`", found=f'"{name}"',
                     allowed=listed(names), near=closest(name, names))  # fmt: skip
    return None


def _check_type(report: Report, entry: Message, field: str, tensor: Tensor, data_type: str, code: str) -> None:
    if tensor.type is not None and tensor.type != data_type:
        wanted = next((name for name, of in _VALUES.items() if of == tensor.type), None)
        report.field(
            entry, field if entry.has(field) else "", code,
            f"the {tensor.kind} `{tensor.name}` of the model has the type {tensor.type}",
            found=data_type, allowed=tensor.type,
            fix=f"write {wanted}" if field in _VALUES and wanted else f"write data_type: {tensor.type}",
        )  # fmt: skip


def _without_batch(tensor: Tensor, batching: bool | None) -> tuple[Dimension, ...] | None:
    """The shape beside the batch; None where it is unknown."""
    if tensor.shape is None or batching is None:
        return None
    return tensor.shape[1:] if batching else tensor.shape


def _fits(shape: Sequence[Dimension], dims: Sequence[int]) -> bool:
    """Whether each number agrees; a symbol agrees with everything. A state has a dimension."""
    return (
        bool(dims)
        and len(shape) == len(dims)
        and all(not isinstance(d, int) or d == n for d, n in zip(shape, dims, strict=True))
    )


def _refuse(report: Report, message: Message, field: str, words: str) -> None:
    report.field(message, field, "not-honoured", f"this server's ONNX backend does not support {words}",
                 fix=f"remove `{field}`")  # fmt: skip


def _children(config: Message, field: str) -> list[Message]:
    batcher = config.child("sequence_batching")
    return batcher.children(field) if batcher else []
