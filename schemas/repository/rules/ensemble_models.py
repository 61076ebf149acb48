"""Rules for ensembles and the models of their steps.

Decides the problems that Triton finds after it has loaded the models (``ValidateEnsembleConfig``,
``CheckNode``): missing models, cycles, versions, unknown inputs and outputs, different types and
shapes. Must not know files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from amphitrite.schemas.repository.config.syntax_tree import Message, Position
from amphitrite.schemas.repository.files.findings import closest, listed
from amphitrite.schemas.repository.models.rule_report import Report
from amphitrite.schemas.repository.rules.tensors import Signature, Tensor


@dataclass(frozen=True, slots=True)
class CheckedModel:
    """One model of the repository.

    ``versions``: those that Triton loads. ``signature``: None if it is unknown, or if the model has
    errors.
    """

    report: Report
    config: Message
    versions: tuple[int, ...]
    signature: Signature | None

    @property
    def steps(self) -> Sequence[Message]:
        scheduling = self.config.child("ensemble_scheduling")
        return scheduling.children("step") if scheduling else ()


@dataclass(frozen=True, slots=True)
class _TensorInfo:
    """The type and shape of an ensemble tensor, and where they come from."""

    type: str
    dims: tuple[int, ...]
    batching: bool
    source: str

    @property
    def full(self) -> tuple[int, ...]:
        return (-1, *self.dims) if self.batching else self.dims


def check(models: Mapping[str, CheckedModel]) -> None:
    """Report the problems of ensembles, in their reports."""
    for name, model in models.items():
        if model.steps:
            _check_models(name, model, models)
    for name, model in models.items():
        if model.steps and not model.report.failed:
            cycle = _cycle(name, models)
            if cycle:
                model.report.field(
                    model.config,
                    "ensemble_scheduling",
                    "ensemble-ring",
                    "ensembles must not contain each other",
                    found=" -> ".join(cycle),
                    fix="remove one of these steps",
                )
    for model in models.values():
        if model.steps and not model.report.failed and model.signature is not None:
            _check_tensors(model, model.signature, models)


def _check_models(name: str, ensemble: CheckedModel, models: Mapping[str, CheckedModel]) -> None:
    for step in ensemble.steps:
        model_name = step.text("model_name")
        if not model_name:
            continue
        if model_name not in models:
            others = [other for other in models if other != name]
            ensemble.report.field(
                step, "model_name", "ensemble-model", "this model is not in the repository", found=f'"{model_name}"',
                allowed=listed(others), near=closest(model_name, others),
            )  # fmt: skip
            continue
        version = step.number("model_version")
        versions = models[model_name].versions
        if version != -1 and version not in versions and versions:
            field = "model_version" if step.has("model_version") else ""
            ensemble.report.field(
                step, field, "ensemble-model", f'version {version} of "{model_name}" is not loaded',
                found=None if field else "no model_version, so the default 0 applies",
                allowed=f"{listed([str(v) for v in versions])}, or -1 for the newest",
                fix="write model_version: -1" if not field else f"change it, or the `version_policy` of {model_name}",
            )  # fmt: skip


def _cycle(name: str, models: Mapping[str, CheckedModel]) -> list[str] | None:
    """The path from an ensemble through steps back to itself; None if there is none."""
    stack, seen = [[name]], set()
    while stack:
        path = stack.pop()
        for step in models[path[-1]].steps if path[-1] in models else ():
            following = step.text("model_name")
            if following == name:
                return [*path, name]
            if following not in seen and following in models:
                seen.add(following)
                stack.append([*path, following])
    return None


def _check_tensors(ensemble: CheckedModel, signature: Signature, models: Mapping[str, CheckedModel]) -> None:
    known: dict[str, _TensorInfo] = {}
    for tensor in (*signature.inputs, *signature.outputs):
        reshape = tensor.entry.child("reshape") if tensor.entry else None
        dims = reshape.numbers("shape") if reshape else tensor.dims
        known.setdefault(tensor.name, _TensorInfo(tensor.type, dims, signature.max_batch_size > 0, "the ensemble"))
    for step in ensemble.steps:
        model = models[step.text("model_name")]
        if model.signature is None:
            continue
        model_signature = model.signature
        if model_signature.max_batch_size and model_signature.max_batch_size < signature.max_batch_size:
            ensemble.report.field(
                ensemble.config,
                "max_batch_size",
                "ensemble-batch",
                f'must not be greater than that of its model "{step.text("model_name")}"',
                found=str(signature.max_batch_size),
                allowed=f"at most {model_signature.max_batch_size}",
            )
        _check_inputs(ensemble.report, step, model_signature, known)
        _check_outputs(ensemble.report, step, model_signature, known)


def _check_inputs(report: Report, step: Message, signature: Signature, known: dict[str, _TensorInfo]) -> None:
    inputs = {tensor.name: tensor for tensor in signature.inputs}
    input_map = step.mapping("input_map")
    for key, value in input_map.items():
        if key not in inputs:
            _report_unknown_tensor(report, step, "input", key, value.position, list(inputs))
        else:
            _compare(report, step, "input_map", str(value.value), value.position, inputs[key], signature, known)
    for name, tensor in inputs.items():
        if name not in input_map and not tensor.optional:
            report.field(
                step,
                "input_map",
                "ensemble-map",
                f'input "{name}" of "{step.text("model_name")}" is not mapped',
                fix=f'add input_map {{ key: "{name}" value: "..." }}',
            )


def _check_outputs(report: Report, step: Message, signature: Signature, known: dict[str, _TensorInfo]) -> None:
    outputs = {tensor.name: tensor for tensor in signature.outputs}
    for key, value in step.mapping("output_map").items():
        if key not in outputs:
            _report_unknown_tensor(report, step, "output", key, value.position, list(outputs))
        else:
            _compare(report, step, "output_map", str(value.value), value.position, outputs[key], signature, known)


def _report_unknown_tensor(
    report: Report, step: Message, kind: str, key: str, position: Position, names: Sequence[str]
) -> None:
    report.at(
        position,
        step.at(f"{kind}_map"),
        "ensemble-map",
        f'"{step.text("model_name")}" has no {kind} "{key}"',
        allowed=listed(list(names)),
        near=closest(key, names),
        fix="write the tensor of the model as `key`, and the one of the ensemble as `value`",
    )


def _compare(
    report: Report, step: Message, field: str, name: str, position: Position, tensor: Tensor, signature: Signature,
    known: dict[str, _TensorInfo],
) -> None:  # fmt: skip
    """Compare a model's tensor with the ensemble tensor to which it is mapped."""
    model = step.text("model_name")
    mine = _TensorInfo(tensor.type, tensor.dims, signature.max_batch_size > 0, f'"{model}"')
    other = known.setdefault(name, mine)
    if other.type != mine.type:
        report.at(
            position,
            step.at(field),
            "ensemble-type",
            f'ensemble tensor "{name}" has two types',
            found=f"{other.type} of {other.source}, {mine.type} of {tensor.name} of {mine.source}",
            fix="use the same type for both",
        )
    elif not _same_shape(other.dims, mine.dims) and not _same_shape(other.full, mine.full):
        report.at(
            position, step.at(field), "ensemble-shape", f'ensemble tensor "{name}" has two shapes',
            found=f"{list(other.full)} of {other.source}, {list(mine.full)} of {tensor.name} of {mine.source}",
            fix="use the same dims for both",
        )  # fmt: skip


def _same_shape(one: Sequence[int], other: Sequence[int]) -> bool:
    return len(one) == len(other) and all(a == b or -1 in (a, b) for a, b in zip(one, other, strict=True))
