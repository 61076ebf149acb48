"""Rules for the inputs and outputs of a configuration.

Decides the problems of names, types, dims, reshape and format, as Triton's
``ValidateModelIOConfig`` does. Must not know backends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from amphitrite.schemas.repository.config.syntax_tree import Message
from amphitrite.schemas.repository.files.file_listing import Server
from amphitrite.schemas.repository.models.rule_report import Report

_DIMENSION = "1 or more, or -1 for a variable size"


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output after completion.

    ``type``: such as ``TYPE_FP32``. ``dims``: without the batch dimension. ``entry``: its entry in
    config.pbtxt, None if it was completed.
    """

    name: str
    type: str
    dims: tuple[int, ...]
    optional: bool = False
    entry: Message | None = None


@dataclass(frozen=True, slots=True)
class Signature:
    """The inputs and outputs of a model. ``max_batch_size``: 0 without batching."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    max_batch_size: int
    decoupled: bool = False


def declared(config: Message) -> Signature:
    """The signature in config.pbtxt.

    Of entries with the same name the first one counts, as in Triton.
    """

    def entries(kind: str) -> tuple[Tensor, ...]:
        tensors: dict[str, Tensor] = {}
        for entry in config.children(kind):
            name = entry.text("name")
            optional = kind == "input" and bool(entry.number("optional"))
            tensors.setdefault(name, Tensor(name, entry.enum_name("data_type"), entry.numbers("dims"), optional, entry))
        return tuple(tensors.values())

    policy = config.child("model_transaction_policy")
    decoupled = bool(policy and policy.number("decoupled"))
    return Signature(entries("input"), entries("output"), max(0, config.number("max_batch_size")), decoupled)


def check(report: Report, config: Message, server: Server, *, platform: str, completed: bool, batching: bool) -> None:
    """Report problems of ``input`` and ``output``.

    ``completed``: the backend adds missing fields and checks dims itself.
    """
    for kind in ("input", "output"):
        first: dict[str, Message] = {}
        for entry in config.children(kind):
            _check_entry(report, entry, kind, platform, completed=completed, batching=batching)
            name = entry.text("name")
            if name and name in first:
                line = first[name].position.line
                report.field(
                    entry,
                    "name",
                    "duplicate-tensor",
                    f'duplicate {kind} "{name}"; the first one is in line {line}',
                    severity="warning",
                    fix="remove one of the two",
                )
            first.setdefault(name, entry)


def _check_entry(report: Report, entry: Message, kind: str, platform: str, *, completed: bool, batching: bool) -> None:
    name = entry.text("name")
    tensor = f'{kind} "{name}"' if name else f"this {kind}"
    if not name and not entry.incomplete and not completed:
        report.field(entry, "", "required", f"this {kind} has no `name`", fix='add name: "..."')
    if not completed and not entry.incomplete:
        if not entry.number("data_type"):
            report.field(
                entry, "", "required", f"{tensor} has no `data_type`", fix="add data_type, for example TYPE_FP32"
            )
        if not entry.has("dims"):
            fix = "add dims, without the batch dimension" if batching else "add dims, one number for each dimension"
            report.field(entry, "", "required", f"{tensor} has no `dims`", fix=fix)
    for index, dim in enumerate(entry.numbers("dims")):
        if dim < 1 and dim != -1:
            report.field(entry, "dims", "dims", "invalid dimension", found=str(dim), allowed=_DIMENSION, index=index)
    _check_reshape(report, entry, tensor, batching=batching)
    if platform != "tensorrt_plan":
        for field in ("is_shape_tensor", "is_non_linear_format_io"):
            if entry.number(field):
                report.field(
                    entry, field, "tensorrt-only", f"only TensorRT models may have `{field}`", fix=f"remove `{field}`"
                )
    if kind == "input" and entry.number("format") in (1, 2) and entry.has("dims") and len(entry.numbers("dims")) != 3:
        report.field(
            entry,
            "format",
            "format",
            f"`{entry.enum_name('format')}` needs 3 dims",
            found=f"{len(entry.numbers('dims'))}",
            fix="remove `format`, or add height, width and channels to dims",
        )


def _check_reshape(report: Report, entry: Message, tensor: str, *, batching: bool) -> None:
    reshape = entry.child("reshape")
    if reshape is None or reshape.incomplete:
        return
    shape, dims = reshape.numbers("shape"), entry.numbers("dims")
    if not shape and not batching:
        report.field(entry, "reshape", "reshape", f"{tensor}: an empty reshape (a scalar) needs batching",
                     fix="remove `reshape`, or set max_batch_size")  # fmt: skip
        return
    for index, dim in enumerate(shape):
        if dim < 1 and dim != -1:
            report.field(reshape, "shape", "dims", "invalid dimension", found=str(dim), allowed=_DIMENSION, index=index)
            return
    if dims and not _same_size(dims, shape):
        report.field(
            entry,
            "reshape",
            "reshape",
            f"{tensor}: dims and reshape must have the same number of elements",
            found=f"dims {list(dims)}, shape {list(shape)}",
            fix="use dims and shape with equal products, also between the dimensions of variable size",
        )


def _same_size(dims: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether the products are equal, also those between dimensions of variable size."""
    if -1 not in dims and -1 not in shape:
        return prod(dims) == prod(shape) if shape else prod(dims) == 1
    return _parts(dims) == _parts(shape)


def _parts(shape: Sequence[int]) -> list[int]:
    parts = [1]
    for dim in shape:
        if dim == -1:
            parts.append(1)
        else:
            parts[-1] *= dim
    return parts
