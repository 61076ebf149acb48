"""A parsed config.pbtxt: typed values, each with its position.

Decides how rules read a value, its default and its position. Must not know text or rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from amphitrite.schemas.repository.config import fields

Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Position:
    """A position in config.pbtxt, 1-based."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Value:
    """A scalar or a message. ``key_position``: the position of the field's name."""

    value: Scalar | Message
    position: Position
    key_position: Position

    @property
    def message(self) -> Message:
        assert isinstance(self.value, Message)
        return self.value

    @property
    def number(self) -> int:
        return int(self.value) if isinstance(self.value, (int, float)) else 0


@dataclass(slots=True)
class Message:
    """One message of the type ``type``.

    ``path``: such as ``input[0]``; empty for the configuration itself. ``incomplete``: part of it
    could not be read, so a field that seems to be missing may be present.
    """

    type: str
    position: Position
    path: str = ""
    values: dict[str, list[Value]] = field(default_factory=dict)
    incomplete: bool = False

    def has(self, name: str) -> bool:
        """Whether a field has a value."""
        return bool(self.values.get(name))

    def all(self, name: str) -> Sequence[Value]:
        """All values of a field."""
        return self.values.get(name, ())

    def text(self, name: str) -> str:
        """The last value of a string field; empty by default."""
        values = self.all(name)
        return str(values[-1].value) if values else ""

    def number(self, name: str) -> int:
        """The last value of a number, a boolean or an enumeration (as its number); 0 by default."""
        values = self.all(name)
        return values[-1].number if values else 0

    def numbers(self, name: str) -> tuple[int, ...]:
        """All values of a numeric field."""
        return tuple(value.number for value in self.all(name))

    def child(self, name: str) -> Message | None:
        """The message of a field that is not repeated; None if it is absent."""
        values = self.all(name)
        return values[-1].message if values else None

    def children(self, name: str) -> list[Message]:
        """All messages of a repeated field."""
        return [value.message for value in self.all(name)]

    def enum_name(self, name: str) -> str:
        """The last value of an enumeration as its name."""
        return fields.enum_name(fields.table().messages[self.type][name].type, self.number(name))

    def mapping(self, name: str) -> Mapping[str, Value]:
        """A map field: key -> its last value, in the order of the file."""
        return {str(key): value for key, value in self._entries(name)}

    def at(self, name: str) -> str:
        """The path of a field in this message."""
        return f"{self.path}.{name}" if self.path else name

    def _entries(self, name: str) -> Iterator[tuple[Scalar, Value]]:
        default = "" if fields.table().messages[self.type][name].key == "string" else 0
        for entry in self.children(name):
            key = entry.all("key")
            value = entry.all("value")
            yield (
                key[-1].value if key and not isinstance(key[-1].value, Message) else default,
                value[-1] if value else Value(_default_value(self.type, name, entry), entry.position, entry.position),
            )


def _default_value(message: str, name: str, entry: Message) -> Scalar | Message:
    """The value of a map entry without one: the default of its type."""
    kind = fields.table().messages[message][name].type
    if kind in fields.table().messages:
        return Message(kind, entry.position, entry.path)
    return "" if kind in ("string", "bytes") else 0
