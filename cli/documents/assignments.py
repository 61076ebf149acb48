"""Assignments on the command line: ``a.b[0].c=value``.

Decides how a path and a value are written (as in az's generic update) and where a value may be set.
Must not know files, fields or options.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from amphitrite.schemas.errors import Error

#: Keys of mappings and indexes of lists.
Path = tuple[str | int, ...]

_KEY = r"[^.\[\]=]+"
_SELECTOR = r"\[(?:\d{1,6}|[^\[\]=]+=[^\[\]]*)\]"
_PATH = rf"{_KEY}(?:\.?{_SELECTOR})*(?:\.{_KEY}(?:\.?{_SELECTOR})*)*"
_ASSIGNMENT = re.compile(rf"(?P<path>{_PATH})=(?P<value>.*)", re.DOTALL)
_STEP = re.compile(rf"(?P<key>{_KEY})|\[(?P<index>\d+)\]|\[(?P<field>[^\[\]=]+)=(?P<text>[^\[\]]*)\]")
#: The beginning of a Python literal that is not JSON.
_LITERAL = re.compile(r"[\[{('\"]|(?:True|False|None)$")


@dataclass(frozen=True, slots=True)
class Selector:
    """``[field=value]``: the one entry of a list whose ``field`` has this value."""

    field: str
    text: str

    def __str__(self) -> str:
        return f"[{self.field}={self.text}]"


Step = str | int | Selector


@dataclass(frozen=True, slots=True)
class Assignment:
    """``steps``: the path. ``value``: its new value. ``text``: the value as it was written."""

    steps: tuple[Step, ...]
    value: Any
    text: str

    @property
    def path(self) -> Path:
        """The steps that are not selectors; ``resolve_selectors`` replaces selectors by indexes."""
        return tuple(step for step in self.steps if not isinstance(step, Selector))

    @property
    def origin(self) -> str:
        """The location in messages: ``--set a.b``."""
        return f"--set {path_text(self.steps)}"


def parse_assignment(text: str, *, force_string: bool = False) -> Assignment:
    """The assignment in ``text``.

    With ``force_string`` the value is text; else see ``parse_value``.

    Raises Error UsageError if ``text`` has no path or no ``=``.
    """
    match = _ASSIGNMENT.fullmatch(text)
    if match is None:
        raise Error(
            "UsageError",
            f"--set: found {text!r}; allowed: PATH=VALUE",
            target="--set",
            hint="for example --set instance_count=2 or --set identity.user_assigned_identities[0].resource_id=ID",
        )
    value = match["value"]
    return Assignment(_steps(match["path"]), value if force_string else parse_value(value), value)


def parse_path(option: str, text: str) -> tuple[Step, ...]:
    """The steps of a path without a value. Raises Error UsageError, which names ``option``."""
    if re.fullmatch(_PATH, text) is None:
        message = f"{option}: found {text!r}; allowed: a path such as tags.team or identity.user_assigned_identities[0]"
        raise Error("UsageError", message, target=option)
    return _steps(text)


def _steps(text: str) -> tuple[Step, ...]:
    steps: list[Step] = []
    for match in _STEP.finditer(text):
        if match["key"] is not None:
            steps.append(match["key"])
        else:
            steps.append(int(match["index"]) if match["index"] is not None else Selector(match["field"], match["text"]))
    return tuple(steps)


def path_text(steps: Iterable[Step]) -> str:
    """The path as text: ``a.b[0]``."""
    return "".join(
        f"[{step}]" if isinstance(step, int) else str(step) if isinstance(step, Selector) else f".{step}"
        for step in steps
    ).removeprefix(".")


def parse_value(text: str) -> Any:
    """The value as JSON, else as a Python literal such as ``{'a': 1}`` (like az), else as text."""
    try:
        return json.loads(text, parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError):
        return _literal(text) if _LITERAL.match(text.strip()) else text


def _no_constant(word: str) -> Any:
    raise ValueError(word)  # NaN and Infinity are text


def _finite(word: str) -> float:
    number = float(word)
    if number in (float("inf"), float("-inf")):
        raise ValueError(word)  # not representable in JSON
    return number


def _literal(text: str) -> Any:
    import ast
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escape sequences in text that is not Python
            value = ast.literal_eval(text.strip())
        return json.loads(json.dumps(value, allow_nan=False))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return text


def resolve_selectors(value: Any, steps: Iterable[Step], origin: str) -> Path:
    """``steps`` with an index in place of each selector.

    Raises Error UsageError if one does not match once.
    """
    path: list[str | int] = []
    for step in steps:
        if isinstance(step, Selector):
            step = _selected(value, step, origin)
        path.append(step)
        value = value_at(value, (step,))
    return tuple(path)


def _selected(value: Any, selector: Selector, origin: str) -> int:
    if not isinstance(value, list):
        _refuse(origin, "a list", value)
    parsed_value = parse_value(selector.text)
    matches = [
        index
        for index, entry in enumerate(value)
        if isinstance(entry, Mapping) and entry.get(selector.field) in (selector.text, parsed_value)
    ]
    if len(matches) != 1:
        count = "no entry" if not matches else f"{len(matches)} entries"
        raise Error(
            "UsageError",
            f"{origin}: {selector} must match one entry; it matches {count} of {len(value)}",
            target=origin,
        )
    return matches[0]


def value_at(value: Any, path: Path) -> Any:
    """The part of ``value`` at ``path``; None if there is none."""
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, Mapping) else None
    return value


def apply_set(value: Any, assignments: Iterable[str]) -> Any:
    """A copy of ``value`` with ``assignments`` (``a.b=c``) applied in order.

    Missing mappings are created. The index of a list must exist or be the next one. Raises Error
    UsageError.
    """
    for text in assignments:
        assignment = parse_assignment(text)
        path = resolve_selectors(value, assignment.steps, assignment.origin)
        value = replace_at(value, path, assignment.value, assignment.origin)
    return value


def replace_at(value: Any, path: Path, new: Any, origin: str) -> Any:
    """A copy of ``value`` with ``new`` at ``path``.

    ``origin`` is the location in errors (UsageError).
    """
    if not path:
        return new
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        items = list(value) if isinstance(value, list) else [] if value is None else _refuse(origin, "a list", value)
        if step > len(items):
            raise Error("UsageError", f"{origin}: found index {step}; allowed: 0 to {len(items)}", target="--set")
        below = items[step] if step < len(items) else None
        items[step : step + 1] = [replace_at(below, rest, new, origin)]
        return items
    entries = (
        dict(value) if isinstance(value, Mapping) else {} if value is None else _refuse(origin, "a mapping", value)
    )
    entries[step] = replace_at(entries.get(step), rest, new, origin)
    return entries


def _refuse(origin: str, allowed: str, value: object) -> Any:
    actual = {str: "text", list: "a list", dict: "a mapping", bool: "true or false", type(None): "nothing"}.get(
        type(value), "a number"
    )
    raise Error("UsageError", f"{origin}: found {actual}; allowed: {allowed}", target="--set")
