"""Warm-up: requests that Triton makes up and runs before a model is ready.

Decides which of them Triton cannot make or its backends refuse (``GenerateWarmupData``). Must not know how inputs
were completed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from amphitrite.schemas.repository.config.syntax_tree import Message
from amphitrite.schemas.repository.files.findings import listed, near
from amphitrite.schemas.repository.models.rule_report import Report
from amphitrite.schemas.repository.rules.tensors import Signature, Tensor

_SOURCES = ("zero_data", "random_data", "input_data_file")
#: Bytes of an element; a string has none of its own.
_SIZES = {
    "TYPE_BOOL": 1,
    "TYPE_UINT8": 1,
    "TYPE_UINT16": 2,
    "TYPE_UINT32": 4,
    "TYPE_UINT64": 8,
    "TYPE_INT8": 1,
    "TYPE_INT16": 2,
    "TYPE_INT32": 4,
    "TYPE_INT64": 8,
    "TYPE_FP16": 2,
    "TYPE_FP32": 4,
    "TYPE_FP64": 8,
    "TYPE_BF16": 2,
}


def check(
    report: Report, config: Message, sizes: Mapping[str, int], signature: Signature | None, made: set[str]
) -> None:
    """``sizes``: files of the model, relative to its directory. ``signature``: None when the inputs are not known.
    ``made``: inputs that the sequence batcher makes."""
    for sample in config.children("model_warmup"):
        if sample.incomplete:
            continue
        name = sample.text("name")
        batch = sample.number("batch_size")
        if not batch:
            report.field(sample, "batch_size", "warmup", f'sample "{name}" has batch_size 0, so Triton skips it',
                         severity="warning", fix="add batch_size: 1")  # fmt: skip
            continue
        inputs = sample.mapping("inputs")
        for key, value in inputs.items():
            _check_data(report, value.message, key, sizes)
        if signature is not None:
            _check_batch(report, sample, batch, signature.max_batch_size)
            _check_inputs(report, sample, signature.inputs, made)


def _check_batch(report: Report, sample: Message, batch: int, maximum: int) -> None:
    if batch > max(1, maximum):
        report.field(sample, "batch_size", "warmup", "is more than the model takes at once", found=str(batch),
                     allowed=f"at most {max(1, maximum)}")  # fmt: skip


def _check_data(report: Report, given: Message, name: str, sizes: Mapping[str, int]) -> None:
    dims = given.numbers("dims")
    if -1 in dims:
        report.field(
            given,
            "dims",
            "warmup",
            f'the sample of "{name}" must say how large each dimension is',
            found="-1",
            allowed="1 or more",
            index=dims.index(-1),
        )
        return
    if given.incomplete:
        return
    if not any(given.has(source) for source in _SOURCES):
        report.field(given, "", "warmup", f'nothing says where the data of "{name}" come from',
                     allowed=f"one of {', '.join(_SOURCES)}", fix="add zero_data: true")  # fmt: skip
    elif given.has("input_data_file"):
        file = given.text("input_data_file")
        size = sizes.get(f"warmup/{file}")
        needed = prod(dims) * _SIZES.get(given.word("data_type"), 4) if dims else 0
        if size is None:
            report.field(given, "input_data_file", "missing-file", f"`{report.name}/warmup/{file}` is not there",
                         found=f'"{file}"', fix="add the file, or use zero_data: true")  # fmt: skip
        elif given.word("data_type") != "TYPE_STRING" and size < needed:
            report.field(
                given,
                "input_data_file",
                "warmup",
                f"`{report.name}/warmup/{file}` is too short",
                found=f"{size} bytes",
                allowed=f"{needed} bytes or more, as dims and data_type say",
            )


def _check_inputs(report: Report, sample: Message, inputs: Sequence[Tensor], made: set[str]) -> None:
    given = sample.mapping("inputs")
    known = {tensor.name: tensor for tensor in inputs}
    for tensor in inputs:
        if tensor.name not in given:
            if not tensor.optional:
                report.field(sample, "", "warmup", f'the sample has no input "{tensor.name}"',
                             found=listed(sorted(given)), fix="add it: a sample needs every input")  # fmt: skip
            continue
        entry = given[tensor.name].message
        if entry.incomplete:
            continue
        if entry.word("data_type") != tensor.type:
            report.field(entry, "data_type", "warmup", f'input "{tensor.name}" is {tensor.type}',
                         found=entry.word("data_type") if entry.has("data_type") else "no data_type",
                         allowed=tensor.type)  # fmt: skip
        dims = entry.numbers("dims")
        if -1 not in dims and not _fits(dims, tensor.dims):
            report.field(entry, "dims", "warmup", f'input "{tensor.name}" has other dims', found=str(list(dims)),
                         allowed=str(list(tensor.dims)), fix="leave the batch dimension out")  # fmt: skip
    for name, value in given.items():
        if name not in known and name not in made:
            report.at(
                value.place,
                sample.at("inputs"),
                "warmup",
                f'the model has no input "{name}"',
                severity="warning",
                allowed=listed(sorted(known)),
                near=near(name, known),
            )


def _fits(dims: Sequence[int], wanted: Sequence[int]) -> bool:
    return len(dims) == len(wanted) and all(b in (-1, a) for a, b in zip(dims, wanted, strict=True))
