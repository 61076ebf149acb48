"""Rules for the steps of one ensemble.

Decides the problems that one ensemble shows by itself (Triton's
``ValidateEnsembleSchedulingConfig``): steps, maps, tensors without a source or a use. Must not know
the other models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from amphitrite.schemas.repository.config.syntax_tree import Message
from amphitrite.schemas.repository.files.findings import closest, listed
from amphitrite.schemas.repository.models.backends import ENSEMBLE, BackendFields
from amphitrite.schemas.repository.models.rule_report import Report

_FORBIDDEN_FIELDS = (
    ("instance_group", "an ensemble must not have instances"),
    ("optimization", "an ensemble must not have optimization settings"),
    ("model_warmup", "an ensemble must not have warm-up samples"),
)


@dataclass(slots=True)
class _Tensor:
    is_produced: bool = False
    is_computable: bool = False
    needs: list[str] = field(default_factory=list)
    feeds: list[str] = field(default_factory=list)
    at: Message | None = None


def check(report: Report, config: Message, backend_fields: BackendFields) -> None:
    """Report the problems of ``ensemble_scheduling``, also if it is missing."""
    scheduling = config.child("ensemble_scheduling")
    if scheduling is None:
        if backend_fields.platform == ENSEMBLE and not config.incomplete:
            report.field(config, "platform", "ensemble-steps", "an ensemble needs `ensemble_scheduling`",
                         fix="add ensemble_scheduling { step [ ... ] }")  # fmt: skip
        return
    if backend_fields.platform != ENSEMBLE:
        report.field(
            config,
            "platform" if config.has("platform") else "ensemble_scheduling",
            "ensemble-platform",
            "only an ensemble may have `ensemble_scheduling`",
            found=f'"{backend_fields.platform}"' if backend_fields.platform else None,
            allowed='platform: "ensemble"',
        )
        return
    for name, message in _FORBIDDEN_FIELDS:
        if config.has(name):
            report.field(config, name, "ensemble-field", message, fix=f"remove `{name}`")
    if not scheduling.has("step") and not scheduling.incomplete:
        report.field(config, "ensemble_scheduling", "ensemble-steps", "an ensemble needs at least one step",
                     fix="add step [ { model_name: ... } ]")  # fmt: skip
        return
    if _check_steps(report, scheduling):
        _check_flow(report, config, scheduling)


def _check_steps(report: Report, scheduling: Message) -> bool:
    """Whether the steps are complete, so that the flow of tensors can be checked."""
    is_complete = not scheduling.incomplete
    for step in scheduling.children("step"):
        is_complete = is_complete and not step.incomplete
        if step.incomplete:
            continue
        for name, content in (("model_name", "the model"), ("input_map", "its inputs"), ("output_map", "its outputs")):
            if not step.has(name) or (name == "model_name" and not step.text(name)):
                report.field(step, "", "required", f"the step has no `{name}` ({content})", fix=f"add {name}")
                is_complete = False
    return is_complete


def _check_flow(report: Report, config: Message, scheduling: Message) -> None:
    tensors: dict[str, _Tensor] = {}
    for step in scheduling.children("step"):
        outputs = []
        for value in step.mapping("output_map").values():
            name = str(value.value)
            tensor = tensors.setdefault(name, _Tensor())
            if tensor.is_produced:
                report.at(
                    value.position,
                    step.at("output_map"),
                    "ensemble-tensor",
                    f'two steps produce the ensemble tensor "{name}"',
                    fix="use different names for the two",
                )
                return
            tensor.is_produced, tensor.at = True, tensor.at or step
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
        _mark_computable(config, tensors)
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


def _mark_computable(config: Message, tensors: Mapping[str, _Tensor]) -> None:
    """Mark the tensors that can be computed from the ensemble's inputs."""
    queue = [entry.text("name") for entry in config.children("input")]
    for name in queue:
        tensors[name].is_computable = True
    while queue:
        for output in tensors[queue.pop()].feeds:
            if not tensors[output].is_computable and all(tensors[need].is_computable for need in tensors[output].needs):
                tensors[output].is_computable = True
                queue.append(output)


def _check_outputs(report: Report, config: Message, tensors: Mapping[str, _Tensor]) -> None:
    if _check_sources(report, tensors):
        return
    outputs = set()
    for entry in config.children("output"):
        name = entry.text("name")
        outputs.add(name)
        if name not in tensors:
            produced = [other for other, tensor in tensors.items() if tensor.is_produced]
            report.field(
                entry,
                "name",
                "ensemble-tensor",
                f'no step produces the ensemble\'s output "{name}"',
                allowed=listed(produced),
                near=closest(name, produced),
                fix="map it in a step's output_map, or remove it",
            )
        elif not tensors[name].is_computable:
            report.field(
                entry,
                "name",
                "ensemble-tensor",
                f'output "{name}" can never be computed',
                fix=_cycle_hint(tensors, name),
            )
    if report.failed:
        return
    for name, tensor in tensors.items():
        if name not in outputs and not (tensor.is_computable and tensor.feeds):
            fix = "add it to the ensemble's outputs, or remove it from output_map"
            fix = fix if tensor.is_computable else _cycle_hint(tensors, name)
            _report(
                report, tensor, "output_map", name, f'no output or step uses the ensemble tensor "{name}"', None, fix
            )


def _check_sources(report: Report, tensors: Mapping[str, _Tensor]) -> bool:
    """Report each tensor that is used and not produced; return whether there is any."""
    without_source = {
        name: tensor for name, tensor in tensors.items() if not tensor.is_produced and not tensor.is_computable
    }
    others = [name for name in tensors if name not in without_source]
    for name, tensor in without_source.items():
        fix = "add it to the ensemble's inputs, or to a step's output_map"
        text = f'no input or step produces the ensemble tensor "{name}"'
        _report(report, tensor, "input_map", name, text, closest(name, others), fix)
    return bool(without_source)


def _report(
    report: Report, tensor: _Tensor, field: str, name: str, text: str, suggestion: str | None, fix: str
) -> None:
    """Report a finding at the value of the map that names the tensor."""
    assert tensor.at is not None
    position = next((v.position for v in tensor.at.mapping(field).values() if v.value == name), tensor.at.position)
    report.at(position, tensor.at.at(field), "ensemble-tensor", text, near=suggestion, fix=fix)


def _cycle_hint(tensors: Mapping[str, _Tensor], name: str) -> str:
    """The hint for a tensor that can never be computed: its steps wait for each other."""
    seen = [name]
    while True:
        missing = next((need for need in tensors[seen[-1]].needs if not tensors[need].is_computable), None)
        if missing is None or missing in seen:
            cycle = " <- ".join([*seen, *([missing] if missing else [])])
            return f"break the cycle of steps that wait for each other: {cycle}"
        seen.append(missing)
