"""One step of ``ml apply``: the change of one resource, and its description.

Decides which fields differ and how a step is described. Pure. Must not know where the two documents
come from.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from amphitrite.cli.documents.apply_documents import RequestedResource

Change = Literal["create", "update", "replace", "retry", "none"]

_SIGNS: Mapping[Change, str] = {"create": "+", "update": "~", "replace": "*", "retry": "~", "none": "="}
_WORDS: Mapping[Change, str] = {
    "create": "created",
    "update": "changed in place",
    "replace": "replaced by new instances",
    "retry": "retried, because its last change failed",
    "none": "unchanged",
}


#: kubectl's words for a step that is done.
_OUTCOMES: Mapping[Change, str] = {"create": "created", "none": "unchanged"}


@dataclass(frozen=True, slots=True)
class FieldChange:
    """``path``: dotted. ``before`` and ``after``: None if the field is absent."""

    path: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Step:
    """``name``: as it is printed, with the version that an asset will have.

    ``reasons``: fields whose change needs new instances.
    """

    item: RequestedResource
    name: str
    change: Change
    reasons: tuple[str, ...] = ()
    fields: tuple[FieldChange, ...] = field(default=())

    @property
    def subject(self) -> str:
        """kubectl's KIND/NAME: ``deployment/pictures/blue``."""
        return f"{self.item.kind}/{self.name}"

    def to_document(self) -> dict[str, Any]:
        """The step as JSON data."""
        return {
            "kind": self.item.kind,
            "name": self.name,
            "change": self.change,
            "reasons": list(self.reasons),
            "fields": [{"path": f.path, "before": f.before, "after": f.after} for f in self.fields],
        }


def differences(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> tuple[FieldChange, ...]:
    """The fields that differ, sorted by path.

    Mappings are compared field by field, lists as a whole.
    """
    old, new = dict(_flat(before or {})), dict(_flat(after))
    paths = sorted({*old, *new})
    return tuple(FieldChange(path, old.get(path), new.get(path)) for path in paths if old.get(path) != new.get(path))


def format_steps(steps: Sequence[Step]) -> str:
    """Text for people: a line for each resource, and a line for each field that changes."""
    lines = []
    for step in steps:
        why = f" ({', '.join(step.reasons)})" if step.reasons else ""
        lines.append(f"{_SIGNS[step.change]} {step.subject}: {_WORDS[step.change]}{why}")
        lines += [f"    {_line(one)}" for one in step.fields]
    counts = [f"{n} {_WORDS[change]}" for change in _WORDS if (n := sum(s.change == change for s in steps))]
    return "\n".join([*lines, f"{', '.join(counts)}.", ""])


def format_outcome(step: Step, fields: Sequence[FieldChange]) -> str:
    """kubectl's line about a step that is done, and a line for each of ``fields``."""
    why = f" ({_WORDS[step.change]}: {', '.join(step.reasons)})" if step.change == "replace" else ""
    lines = [f"    {_line(one)}" for one in fields]
    return "\n".join([f"{step.subject} {_OUTCOMES.get(step.change, 'configured')}{why}", *lines])


def _line(one: FieldChange) -> str:
    if one.before is None:
        return f"{one.path}: {_value(one.after)}"
    if one.after is None:
        return f"{one.path}: {_value(one.before)} -> (none)"
    return f"{one.path}: {_value(one.before)} -> {_value(one.after)}"


def _value(value: Any) -> str:
    return value if isinstance(value, str) and value and "\n" not in value else json.dumps(value, ensure_ascii=False)


def _flat(value: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, entry in value.items():
        path = f"{above}.{name}" if above else str(name)
        if isinstance(entry, Mapping):
            yield from _flat(entry, path)
        elif entry is not None:
            yield path, entry
