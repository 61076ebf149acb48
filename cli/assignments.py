"""``--set a.b[0].c=value``: changes to a document from the command line.

Decides how an assignment is read and where it may write. Must not know files or fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from amphitrite.schemas.errors import Error

Path = tuple[str | int, ...]

_STEP = re.compile(r"(?P<key>[^.\[\]=]+)(?P<indexes>(\[\d{1,6}\])*)")


@dataclass(frozen=True, slots=True)
class Assignment:
    """``path`` is set to ``value``, which is JSON where ``text`` is JSON, else ``text`` itself."""

    path: Path
    value: Any
    text: str

    @property
    def origin(self) -> str:
        """What stands for a location in messages: ``--set a.b``."""
        dotted = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)
        return f"--set {dotted.removeprefix('.')}"


def parse_assignment(text: str) -> Assignment:
    """Raises Error("UsageError") when ``text`` has no path or no ``=``."""
    written, equals, value = text.partition("=")
    path: list[str | int] = []
    for step in written.split("."):
        match = _STEP.fullmatch(step)
        if match is None:
            break
        path.append(match["key"])
        path.extend(int(index) for index in re.findall(r"\d+", match["indexes"]))
    else:
        if equals:
            return Assignment(tuple(path), _parsed(value), value)
    raise Error(
        "UsageError",
        f"--set {text!r} is not of the form path=value",
        target="--set",
        hint="for example --set instance_count=2, or --set identity.user_assigned_identities[0].resource_id=ID",
    )


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text


def _no_constant(word: str) -> Any:
    raise ValueError(word)  # NaN and Infinity are text


def apply_set(value: Any, assignments: Iterable[str]) -> Any:
    """``value`` with each of ``assignments`` (``a.b=c``) applied in order; ``value`` itself is not changed.

    Mappings that are missing are made; a list index must exist or be the next one. Raises Error("UsageError").
    """
    for text in assignments:
        assignment = parse_assignment(text)
        value = assigned(value, assignment.path, assignment.value, assignment.origin)
    return value


def assigned(value: Any, path: Path, new: Any, origin: str) -> Any:
    """A copy of ``value`` with ``new`` at ``path``. ``origin`` says in errors who wanted it."""
    if not path:
        return new
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        items = list(value) if isinstance(value, list) else [] if value is None else _refuse(origin, "a list", value)
        if step > len(items):
            raise Error("UsageError", f"{origin}: index {step} is past the end of {len(items)} entries", target="--set")
        below = items[step] if step < len(items) else None
        items[step : step + 1] = [assigned(below, rest, new, origin)]
        return items
    entries = (
        dict(value) if isinstance(value, Mapping) else {} if value is None else _refuse(origin, "a mapping", value)
    )
    entries[step] = assigned(entries.get(step), rest, new, origin)
    return entries


def _refuse(origin: str, wanted: str, value: object) -> Any:
    found = {str: "text", list: "a list", dict: "a mapping", bool: "true or false"}.get(type(value), "a number")
    raise Error("UsageError", f"{origin}: {wanted} is needed on the way, found {found}", target="--set")
