"""Rules for scheduling: dynamic batching, priorities, sequences, response cache.

Decides the problems of ``dynamic_batching``, ``sequence_batching`` and ``response_cache``, as
Triton's ``ValidateModelConfig`` does. Must not know tensors or backends.
"""

from __future__ import annotations

from collections.abc import Mapping

from amphitrite.schemas.repository.config import fields
from amphitrite.schemas.repository.config.syntax_tree import Message
from amphitrite.schemas.repository.models.rule_report import Report

_BOOLEAN = ("CONTROL_SEQUENCE_START", "CONTROL_SEQUENCE_END", "CONTROL_SEQUENCE_READY")
_VALUES = ("int32_false_true", "fp32_false_true", "bool_false_true")
_CORRELATION = ("TYPE_UINT64", "TYPE_INT64", "TYPE_UINT32", "TYPE_INT32", "TYPE_STRING")
_DELAY = 1


def check(report: Report, config: Message, sizes: Mapping[str, int]) -> None:
    """Report problems. ``sizes``: path relative to the model's directory -> bytes."""
    maximum = config.number("max_batch_size")
    if maximum < 0:
        report.field(config, "max_batch_size", "max-batch-size", "must not be negative", found=str(maximum),
                     allowed="0 (no batching) or more")  # fmt: skip
        maximum = 0
    if dynamic := config.child("dynamic_batching"):
        _check_preferred(report, dynamic, maximum, config.incomplete)
        _check_priorities(report, dynamic)
    if sequence := config.child("sequence_batching"):
        _check_sequence(report, sequence, maximum, config.incomplete)
        _check_states(report, sequence, sizes)
    _check_cache(report, config)


def controls(config: Message) -> set[str]:
    """The names of the tensors that the sequence batcher provides."""
    sequence = config.child("sequence_batching")
    return {entry.text("name") for entry in sequence.children("control_input")} if sequence else set()


def _check_preferred(report: Report, batcher: Message, maximum: int, uncertain: bool) -> None:
    for index, size in enumerate(batcher.numbers("preferred_batch_size")):
        if size <= 0:
            report.field(batcher, "preferred_batch_size", "preferred-batch-size", "must be at least 1", found=str(size),
                         allowed=f"1 to max_batch_size ({maximum})", index=index)  # fmt: skip
        elif size > maximum and not uncertain:
            fix = f"set max_batch_size: {size}, or use smaller preferred sizes"
            report.field(
                batcher,
                "preferred_batch_size",
                "preferred-batch-size",
                "must not be greater than max_batch_size",
                found=str(size),
                allowed=f"at most {maximum}",
                index=index,
                fix=fix,
            )


def _check_priorities(report: Report, batcher: Message) -> None:
    levels = batcher.number("priority_levels")
    default = batcher.number("default_priority_level")
    policies = batcher.mapping("priority_queue_policy")
    if levels:
        if not 1 <= default <= levels:
            report.field(
                batcher,
                "default_priority_level",
                "priority",
                "default_priority_level must be one of the levels",
                found=str(default),
                allowed=f"1 to {levels}",
                fix="add default_priority_level: 1",
            )
        for key, value in policies.items():
            if not 1 <= int(key or 0) <= levels:
                report.at(
                    value.position,
                    batcher.at("priority_queue_policy"),
                    "priority",
                    "unknown priority level",
                    found=key or "0",
                    allowed=f"1 to {levels}",
                )
    if not batcher.number("preserve_ordering"):
        return
    if levels > 1:
        report.field(
            batcher,
            "preserve_ordering",
            "priority",
            "the order of requests cannot be preserved with several priority levels",
            found=f"{levels} levels",
            fix="remove preserve_ordering or priority_levels",
        )
    policy = batcher.child("default_queue_policy")
    for one in [*([policy] if policy else []), *(value.message for value in policies.values())]:
        if one.number("default_timeout_microseconds") and one.number("timeout_action") == _DELAY:
            report.field(
                one,
                "timeout_action",
                "priority",
                "the order of requests cannot be preserved if late requests are delayed",
                found="DELAY",
                allowed="REJECT",
                fix="remove preserve_ordering, or set timeout_action: REJECT",
            )


def _check_sequence(report: Report, batcher: Message, maximum: int, uncertain: bool) -> None:
    names: dict[str, Message] = {}
    kinds: dict[int, Message] = {}
    kind_numbers = fields.table().enums["ModelSequenceBatching.Control.Kind"]
    for entry in batcher.children("control_input"):
        name = entry.text("name")
        if not name and not entry.incomplete:
            report.field(entry, "", "required", "the control input has no `name`", fix='add name: "START"')
        if name and name in names:
            report.field(
                entry,
                "name",
                "duplicate-tensor",
                f'duplicate control input "{name}"',
                found=f"lines {names[name].position.line} and {entry.position.line}",
                fix="use a different tensor for each control",
            )
        names[name] = entry
        for control in entry.children("control"):
            kind = control.number("kind")
            if kind in kinds and kind in kind_numbers.values():
                report.field(
                    control,
                    "kind",
                    "sequence-control",
                    f"two tensors have the control {control.enum_name('kind')}",
                    fix="remove one of them",
                )
                continue
            kinds[kind] = control
            if control.incomplete:
                continue
            if control.enum_name("kind") in _BOOLEAN:
                _check_boolean(report, control)
            elif control.enum_name("kind") == "CONTROL_SEQUENCE_CORRID":
                _check_correlation(report, control)
    if oldest := batcher.child("oldest"):
        _check_preferred(report, oldest, maximum, uncertain)
    direct = batcher.child("direct")
    share = direct.all("minimum_slot_utilization") if direct else ()
    if direct and share and isinstance(share[-1].value, (int, float)) and not _is_share(float(share[-1].value)):
        report.field(direct, "minimum_slot_utilization", "sequence-control", "must be a fraction of the slots",
                     found=str(share[-1].value), allowed="0.0 to 1.0")  # fmt: skip


def _is_share(value: float) -> bool:
    return not (value < 0.0 or value > 1.0)  # The same comparison as in Triton, which accepts NaN.


def _check_boolean(report: Report, control: Message) -> None:
    present = [field for field in _VALUES if control.has(field)]
    kind = control.enum_name("kind")
    if len(present) != 1:
        found = " and ".join(present) if present else "none of them"
        report.field(
            control,
            present[1] if present else "",
            "sequence-control",
            f"{kind} needs its values for false and true in one field",
            found=found,
            allowed=f"one of {', '.join(_VALUES)}",
            fix=None if present else "add int32_false_true: [ 0, 1 ]",
        )
    elif len(control.all(present[0])) != 2:
        report.field(
            control,
            present[0],
            "sequence-control",
            f"`{present[0]}` must have one value for false and one for true",
            found=f"{len(control.all(present[0]))} values",
            allowed="2 values",
        )


def _check_correlation(report: Report, control: Message) -> None:
    for field in _VALUES:
        if control.has(field):
            report.field(control, field, "sequence-control", f"CONTROL_SEQUENCE_CORRID must not have `{field}`",
                         fix=f"remove `{field}`, and add data_type")  # fmt: skip
    if control.enum_name("data_type") not in _CORRELATION:
        report.field(control, "data_type", "sequence-control", "invalid type for a sequence's correlation id",
                     found=control.enum_name("data_type"), allowed=", ".join(_CORRELATION))  # fmt: skip


def _check_states(report: Report, batcher: Message, sizes: Mapping[str, int]) -> None:
    for state in batcher.children("state"):
        for initial in state.children("initial_state"):
            file = initial.text("data_file")
            if file and f"initial_state/{file}" not in sizes:
                report.field(
                    initial,
                    "data_file",
                    "missing-file",
                    f"`{report.name}/initial_state/{file}` does not exist",
                    found=f'"{file}"',
                    fix="add the file, or use zero_data: true",
                )


def _check_cache(report: Report, config: Message) -> None:
    cache, policy = config.child("response_cache"), config.child("model_transaction_policy")
    if cache is None or not cache.number("enable"):
        return
    if config.has("sequence_batching"):
        report.field(cache, "enable", "response-cache", "a model with sequence batching cannot have a response cache",
                     fix="remove response_cache or sequence_batching")  # fmt: skip
    if policy and policy.number("decoupled"):
        report.field(cache, "enable", "response-cache", "a decoupled model cannot have a response cache",
                     fix="remove response_cache or decoupled")  # fmt: skip
