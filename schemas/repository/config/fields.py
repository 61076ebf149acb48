"""The fields of Triton's ModelConfig: names, types, enumerations (``model_config.json``).

Decides only how to look up the table. Must not know text or rules. Outside contract: Triton's
``model_config.proto``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

ROOT = "ModelConfig"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message.

    ``type``: the name of a scalar type, an enumeration or a message; of a map, the type of its
    values. ``key``: the type of a map's keys. ``since``: the first Triton version with the field,
    if later than 2.51.
    """

    type: str
    repeated: bool = False
    key: str | None = None
    oneof: str | None = None
    since: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """``messages``: name -> field -> Field; ``enums``: name -> word -> number."""

    messages: Mapping[str, Mapping[str, Field]]
    enums: Mapping[str, Mapping[str, int]]


@cache
def table() -> Table:
    """The table in ``model_config.json``."""
    document = json.loads((files(__package__) / "model_config.json").read_text(encoding="utf-8"))
    messages = {
        message: {name: _field(given) for name, given in fields.items()}
        for message, fields in document["messages"].items()
    }
    return Table(messages, document["enums"])


def enum_name(enum: str, number: int) -> str:
    """The name of an enumeration's value, or its number if it has no name."""
    return next((name for name, value in table().enums[enum].items() if value == number), str(number))


def _field(entry: Mapping[str, str]) -> Field:
    since = entry.get("since")
    major, _, minor = (since or "0.0").partition(".")
    return Field(
        type=entry["type"],
        repeated=bool(entry.get("repeated")),
        key=entry.get("map"),
        oneof=entry.get("oneof"),
        since=(int(major), int(minor)) if since else None,
    )
