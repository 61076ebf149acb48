"""Reads the fields of a JSON object and collects what is wrong with each.

Decides the messages about missing, unknown and ill-typed fields. Must not know which fields a
setting has. Azure's SDK sends null for a field that is not set, so null is the same as absent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from amphitrite.schemas import durations
from amphitrite.schemas.errors import MISSING, Violation
from amphitrite.schemas.names import nearest

Path = tuple[str | int, ...]


class FieldReader:
    """The fields of ``value``, which stands at ``path``. ``violations`` is shared by all readers of
    one document. A method that finds a violation returns a value that is of no use but typed."""

    def __init__(self, value: object, path: Path, violations: list[Violation], known: Sequence[str]) -> None:
        self.path, self.violations = path, violations
        self._fields: dict[str, Any] = {}
        if not isinstance(value, Mapping):
            self.refuse((), f"must be an object; found {type(value).__name__}")
            return
        by_key = {name.lower(): name for name in known}
        for name, content in value.items():
            spelled = by_key.get(name.lower())
            if spelled is None:
                near = nearest(name, known)
                self.refuse((name,), "there is no such field" + (f"; did you mean {near}?" if near else ""))
            elif content is not None:
                self._fields[spelled] = content

    def refuse(self, path: Path, message: str, hint: str | None = None) -> None:
        self.violations.append(Violation((*self.path, *path), message, hint))

    def get(self, name: str) -> Any:
        """The value as it is; None if it is absent."""
        return self._fields.get(name)

    def required(self, name: str) -> Any:
        if name not in self._fields:
            self.refuse((name,), MISSING)
        return self._fields.get(name)

    def within(self, name: str, known: Sequence[str]) -> FieldReader | None:
        """The object ``name``; None if it is absent."""
        value = self.get(name)
        return None if value is None else FieldReader(value, (*self.path, name), self.violations, known)

    def items(self, name: str, most: int | None = None) -> list[tuple[Path, Any]]:
        """The entries of a list with their paths; none if it is absent."""
        value = self.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            self.refuse((name,), f"must be a list; found {type(value).__name__}")
            return []
        if most is not None and len(value) > most:
            self.refuse((name,), f"has {len(value)} entries; at most {most} are allowed")
            return []
        return [((*self.path, name, at), one) for at, one in enumerate(value)]

    def text(self, name: str, *, needed: bool = True) -> str:
        value = self.required(name) if needed else self.get(name)
        if value is not None and (not isinstance(value, str) or not 0 < len(value) <= 1024 or "\0" in value):
            self.refuse((name,), f"must be text of 1 to 1024 characters without NUL; found {str(value)[:40]!r}")
        return value if isinstance(value, str) else ""

    def flag(self, name: str, default: bool) -> bool:
        value = self.get(name)
        if value is not None and not isinstance(value, bool):
            self.refuse((name,), f"must be true or false; found {str(value)[:40]!r}")
        return value if isinstance(value, bool) else default

    def one_of(self, name: str, words: Sequence[str], default: str | None = None) -> str:
        """The spelling of ``words``. Case does not matter, as in Azure's SDK."""
        value = self.required(name) if default is None else self._fields.get(name, default)
        found = {word.lower(): word for word in words}.get(str(value).lower())
        if found is None and value is not None:
            self.refuse((name,), f"is {str(value)[:40]!r}; allowed: {', '.join(words)}")
        return found or words[0]

    def count(self, name: str, least: int, most: int, default: str | None = None) -> int:
        """A whole number, which Azure sends as text."""
        value = self.required(name) if default is None else self._fields.get(name, default)
        return self._whole(name, value, least, most)

    def numbers(self, name: str, least: int, most: int) -> tuple[int, ...]:
        """A list of whole numbers, at least one."""
        self.required(name)
        entries = self.items(name)
        if not entries and self.get(name) == []:
            self.refuse((name,), "needs at least one entry")
        return tuple(self._whole(name, one, least, most) for _, one in entries)

    def number(self, name: str) -> float:
        value = self.required(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            self.refuse((name,), f"must be a number; found {str(value)[:40]!r}")
        return float(value) if isinstance(value, int | float) else 0.0

    def duration(self, name: str, least: int, most: int, *, whole_minutes: bool = False) -> int:
        """Seconds of an ISO 8601 duration."""
        value = self.required(name)
        if value is None:
            return least
        try:
            seconds = durations.to_seconds(value)
        except ValueError as exc:
            self.refuse((name,), str(exc))
            return least
        if not least <= seconds <= most:
            self.refuse((name,), f"is {value}; allowed: {_iso(least)} to {_iso(most)}")
        elif whole_minutes and seconds % 60:
            self.refuse((name,), f"is {value}; whole minutes are allowed")
        return min(max(seconds, least), most)

    def read(self, name: str, parse: Callable[[Any], Any], *, needed: bool = True) -> Any:
        """``parse`` of the value. Its ValueError is the message."""
        value = self.required(name) if needed else self.get(name)
        if value is None:
            return None
        try:
            return parse(value)
        except ValueError as exc:
            self.refuse((name,), str(exc))
            return None

    def _whole(self, name: str, value: object, least: int, most: int) -> int:
        number = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value
        if value is None:
            return least
        if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
            self.refuse((name,), f"is {str(value)[:40]!r}; allowed: whole numbers from {least} to {most}")
            return least
        return number


def _iso(seconds: int) -> str:
    for unit, length in (("D", 86_400), ("H", 3_600), ("M", 60)):
        if seconds % length == 0:
            return f"P{'' if unit == 'D' else 'T'}{seconds // length}{unit}"
    return f"PT{seconds}S"
