"""JSON that is already text, for a JSON column.

Decides that such text is stored as it is: a routing table of a thousand endpoints is a megabyte,
whose parts are cached as text. Must not know its content.
"""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JsonText:
    """JSON text as a value for a JSON column."""

    text: str


def json_serializer(value: object) -> str:
    """The ``json_serializer`` of the SQLAlchemy engines."""
    return value.text if isinstance(value, JsonText) else json.dumps(value)
