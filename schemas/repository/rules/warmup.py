"""Rules for warm-up samples: requests that Triton runs before a model is ready.

Decides which samples Triton cannot generate (``GenerateWarmupData``) or its backends refuse. Must
not know how inputs are completed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from amphitrite.schemas.repository.config.syntax_tree import Message
from amphitrite.schemas.repository.files.findings import closest, listed
from amphitrite.schemas.repository.models.rule_report import Report
from amphitrite.schemas.repository.rules.tensors import Signature, Tensor

_SOURCES = ("zero_data", "random_data", "input_data_file")
#: Bytes of an element. Strings have no fixed size.
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
    report: Report, config: Message, sizes: Mapping[str, int], signature: Signature | None, sequence_controls: set[str]
) -> None:
    """Report problems of ``model_warmup``.

    ``sizes``: path relative to the model's directory -> bytes. ``signature``: None if the inputs
    are unknown. ``sequence_controls``: inputs that the sequence batcher provides.
    """
    for sample in config.children("model_warmup"):
        if sample.incomplete:
            continue
        name = sample.text("name")
        batch = sample.number("batch_size")
        if not batch:
            report.field(sample, "batch_size", "warmup", f'Triton skips sample "{name}", because its batch_size is 0',
                         severity="warning", fix="add batch_size: 1")  # fmt: skip
            continue
        inputs = sample.mapping("inputs")
        for key, value in inputs.items():
            _check_data(report, value.message, key, sizes)
        if signature is not None:
            _check_batch(report, sample, batch, signature.max_batch_size)
            _check_inputs(report, sample, signature.inputs, sequence_controls)


def check_states(report: Report, config: Message) -> None:
    """Report samples for a model that keeps states: Triton 2.51 dies while it prepares one."""
    batcher = config.child("sequence_batching")
    if batcher is None or not batcher.has("state"):
        return
    for sample in config.children("model_warmup"):
        if sample.number("batch_size"):
            report.field(sample, "", "warmup", "Triton 2.51 dies of a warm-up of a model with a sequence's state",
                         fix="remove `model_warmup`")  # fmt: skip


def _check_batch(report: Report, sample: Message, batch: int, maximum: int) -> None:
    if batch > max(1, maximum):
        report.field(
            sample,
            "batch_size",
            "warmup",
            "must not be greater than the model's largest batch",
            found=str(batch),
            allowed=f"at most {max(1, maximum)}",
        )


def _check_data(report: Report, entry: Message, name: str, sizes: Mapping[str, int]) -> None:
    dims = entry.numbers("dims")
    if -1 in dims:
        report.field(
            entry,
            "dims",
            "warmup",
            f'the sample of "{name}" must not have dimensions of variable size',
            found="-1",
            allowed="1 or more",
            index=dims.index(-1),
        )
        return
    if entry.incomplete:
        return
    if not any(entry.has(source) for source in _SOURCES):
        report.field(entry, "", "warmup", f'the sample of "{name}" has no data source',
                     allowed=f"one of {', '.join(_SOURCES)}", fix="add zero_data: true")  # fmt: skip
    elif entry.has("input_data_file"):
        file = entry.text("input_data_file")
        size = sizes.get(f"warmup/{file}")
        needed = prod(dims) * _SIZES.get(entry.enum_name("data_type"), 4) if dims else 0
        if size is None:
            report.field(entry, "input_data_file", "missing-file", f"`{report.name}/warmup/{file}` does not exist",
                         found=f'"{file}"', fix="add the file, or use zero_data: true")  # fmt: skip
        elif entry.enum_name("data_type") != "TYPE_STRING" and size < needed:
            report.field(
                entry,
                "input_data_file",
                "warmup",
                f"`{report.name}/warmup/{file}` is too short",
                found=f"{size} bytes",
                allowed=f"{needed} bytes or more, from dims and data_type",
            )


def _check_inputs(report: Report, sample: Message, inputs: Sequence[Tensor], sequence_controls: set[str]) -> None:
    samples = sample.mapping("inputs")
    known = {tensor.name: tensor for tensor in inputs}
    for tensor in inputs:
        if tensor.name not in samples:
            if not tensor.optional:
                report.field(sample, "", "warmup", f'the sample has no input "{tensor.name}"',
                             found=listed(sorted(samples)), fix="add it; a sample needs every input")  # fmt: skip
            continue
        entry = samples[tensor.name].message
        if entry.incomplete:
            continue
        if entry.enum_name("data_type") != tensor.type:
            report.field(entry, "data_type", "warmup", f'input "{tensor.name}" has the type {tensor.type}',
                         found=entry.enum_name("data_type") if entry.has("data_type") else "no data_type",
                         allowed=tensor.type)  # fmt: skip
        dims = entry.numbers("dims")
        if -1 not in dims and not _fits(dims, tensor.dims):
            report.field(
                entry,
                "dims",
                "warmup",
                f'the dims must match those of input "{tensor.name}"',
                found=str(list(dims)),
                allowed=str(list(tensor.dims)),
                fix="write the dims without the batch dimension",
            )
    for name, value in samples.items():
        if name not in known and name not in sequence_controls:
            report.at(
                value.position,
                sample.at("inputs"),
                "warmup",
                f'the model has no input "{name}"',
                severity="warning",
                allowed=listed(sorted(known)),
                near=closest(name, known),
            )


def _fits(dims: Sequence[int], expected: Sequence[int]) -> bool:
    return len(dims) == len(expected) and all(b in (-1, a) for a, b in zip(dims, expected, strict=True))
