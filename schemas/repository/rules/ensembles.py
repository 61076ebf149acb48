"""Ensembles: models that only pass tensors on between others.

Decides what Triton refuses of the steps of one ensemble alone (``ValidateEnsembleSchedulingConfig``): steps, maps,
tensors that nobody makes or uses. Must not know the other models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from amphitrite.schemas.repository.config.syntax_tree import Message
from amphitrite.schemas.repository.files.findings import listed, near
from amphitrite.schemas.repository.models.backends import ENSEMBLE, Resolved
from amphitrite.schemas.repository.models.rule_report import Report

_NOT_HERE = (
    ("instance_group", "an ensemble has no instances of its own"),
    ("optimization", "an ensemble runs nothing that could be optimised"),
    ("model_warmup", "an ensemble is not warmed up"),
)


@dataclass(slots=True)
class _Tensor:
    made: bool = False
    ready: bool = False
    needs: list[str] = field(default_factory=list)
    feeds: list[str] = field(default_factory=list)
    at: Message | None = None


def check(report: Report, config: Message, found: Resolved) -> None:
    """Says what is wrong with ``ensemble_scheduling``, and with a configuration that should have it and has not."""
    scheduling = config.child("ensemble_scheduling")
    if scheduling is None:
        if found.platform == ENSEMBLE and not config.incomplete:
            report.field(config, "platform", "ensemble-steps", "an ensemble needs `ensemble_scheduling`",
                         fix="add ensemble_scheduling { step [ ... ] }")  # fmt: skip
        return
    if found.platform != ENSEMBLE:
        report.field(
            config,
            "platform" if config.has("platform") else "ensemble_scheduling",
            "ensemble-platform",
            "`ensemble_scheduling` is for ensembles only",
            found=f'"{found.platform}"' if found.platform else None,
            allowed='platform: "ensemble"',
        )
        return
    for name, words in _NOT_HERE:
        if config.has(name):
            report.field(config, name, "ensemble-field", words, fix=f"remove `{name}`")
    if not scheduling.has("step") and not scheduling.incomplete:
        report.field(config, "ensemble_scheduling", "ensemble-steps", "an ensemble has at least one step",
                     fix="add step [ { model_name: ... } ]")  # fmt: skip
        return
    if _check_steps(report, scheduling):
        _check_flow(report, config, scheduling)


def _check_steps(report: Report, scheduling: Message) -> bool:
    """Whether the steps are whole, so that the flow between them can be judged."""
    whole = not scheduling.incomplete
    for step in scheduling.children("step"):
        whole = whole and not step.incomplete
        if step.incomplete:
            continue
        for name, what in (("model_name", "the model"), ("input_map", "its inputs"), ("output_map", "its outputs")):
            if not step.has(name) or (name == "model_name" and not step.text(name)):
                report.field(step, "", "required", f"a step without `{name}`, {what}", fix=f"add {name}")
                whole = False
    return whole


def _check_flow(report: Report, config: Message, scheduling: Message) -> None:
    tensors: dict[str, _Tensor] = {}
    for step in scheduling.children("step"):
        outputs = []
        for value in step.mapping("output_map").values():
            name = str(value.value)
            tensor = tensors.setdefault(name, _Tensor())
            if tensor.made:
                report.at(
                    value.place,
                    step.at("output_map"),
                    "ensemble-tensor",
                    f'ensemble tensor "{name}" is made twice',
                    fix="give the two another name",
                )
                return
            tensor.made, tensor.at = True, tensor.at or step
            outputs.append(name)
        for value in step.mapping("input_map").values():
            name = str(value.value)
            tensors.setdefault(name, _Tensor(at=step))
            for output in outputs:
                tensors[output].needs.append(name)
                tensors[name].feeds.append(output)
    if config.incomplete or any(entry.incomplete for kind in ("input", "output") for entry in config.children(kind)):
        return
    if _check_inputs(report, config, tensors):
        _spread(config, tensors)
        _check_outputs(report, config, tensors)


def _check_inputs(report: Report, config: Message, tensors: Mapping[str, _Tensor]) -> bool:
    unused = [entry for entry in config.children("input") if entry.text("name") not in tensors]
    for entry in unused:
        report.field(
            entry,
            "name",
            "ensemble-tensor",
            f'no step uses the ensemble\'s input "{entry.text("name")}"',
            found=", ".join(f'"{name}"' for name in tensors),
            fix="map it in a step's input_map, or remove it",
        )
    return not unused


def _spread(config: Message, tensors: Mapping[str, _Tensor]) -> None:
    """Marks what can be made from the ensemble's inputs, step by step."""
    queue = [entry.text("name") for entry in config.children("input")]
    for name in queue:
        tensors[name].ready = True
    while queue:
        for output in tensors[queue.pop()].feeds:
            if not tensors[output].ready and all(tensors[need].ready for need in tensors[output].needs):
                tensors[output].ready = True
                queue.append(output)


def _check_outputs(report: Report, config: Message, tensors: Mapping[str, _Tensor]) -> None:
    if _check_sources(report, tensors):
        return
    outputs = set()
    for entry in config.children("output"):
        name = entry.text("name")
        outputs.add(name)
        if name not in tensors:
            made = [other for other, tensor in tensors.items() if tensor.made]
            report.field(
                entry, "name", "ensemble-tensor", f'no step makes the ensemble\'s output "{name}"',
                allowed=listed(made), near=near(name, made), fix="map it in a step's output_map, or remove it",
            )  # fmt: skip
        elif not tensors[name].ready:
            report.field(
                entry, "name", "ensemble-tensor", f'output "{name}" is never written', fix=_ring(tensors, name)
            )
    if report.failed:
        return
    for name, tensor in tensors.items():
        if name not in outputs and not (tensor.ready and tensor.feeds):
            fix = "add it to the ensemble's outputs, or remove it from output_map"
            fix = fix if tensor.ready else _ring(tensors, name)
            _about(report, tensor, "output_map", name, f'nothing uses the ensemble tensor "{name}"', None, fix)


def _check_sources(report: Report, tensors: Mapping[str, _Tensor]) -> bool:
    """Whether some tensor is used that nobody makes; said of each."""
    lacking = {name: tensor for name, tensor in tensors.items() if not tensor.made and not tensor.ready}
    there = [name for name in tensors if name not in lacking]
    for name, tensor in lacking.items():
        fix = "add it to the ensemble's inputs, or to a step's output_map"
        text = f'nothing makes the ensemble tensor "{name}"'
        _about(report, tensor, "input_map", name, text, near(name, there), fix)
    return bool(lacking)


def _about(report: Report, tensor: _Tensor, field: str, name: str, text: str, guess: str | None, fix: str) -> None:
    """At the value of the map that names the tensor."""
    assert tensor.at is not None
    place = next((v.place for v in tensor.at.mapping(field).values() if v.value == name), tensor.at.place)
    report.at(place, tensor.at.at(field), "ensemble-tensor", text, near=guess, fix=fix)


def _ring(tensors: Mapping[str, _Tensor], name: str) -> str:
    """Why a tensor that a step makes is never there, where every tensor has a source: its steps wait for each other."""
    seen = [name]
    while True:
        missing = next((need for need in tensors[seen[-1]].needs if not tensors[need].ready), None)
        if missing is None or missing in seen:
            return f"the steps wait for each other: {' <- '.join([*seen, *([missing] if missing else [])])}"
        seen.append(missing)
