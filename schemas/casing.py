"""Spellings: Azure ML's enumerations in documents (snake_case) and in wire bodies (Azure Resource Manager's).

Decides which wire spelling belongs to which word. Must not know which values a field allows: a word without a wire
spelling of its own passes through, and the JSON Schema judges it.
"""

from __future__ import annotations

import re

_WORD = re.compile(r"(.)([A-Z][a-z]+)")
_EDGE = re.compile(r"([a-z0-9])([A-Z])")

#: Only what is not plain CamelCase of the snake_case word.
_IRREGULAR = {"aml_token": "AMLToken", "aad_token": "AADToken"}


def snake(text: str) -> str:
    """``AMLToken``, ``amlToken``, ``AML_TOKEN`` -> ``aml_token``: how Azure ML compares enumerations."""
    return _EDGE.sub(r"\1_\2", _WORD.sub(r"\1_\2", text)).replace("__", "_").lower()


def to_document(value: object) -> object:
    """A wire enumeration value as a document's; anything that is not text passes through."""
    return snake(value) if isinstance(value, str) else value


def to_wire(value: str) -> str:
    """``system_assigned`` -> ``SystemAssigned``, ``aml_token`` -> ``AMLToken``."""
    return _IRREGULAR.get(value) or "".join(part.capitalize() for part in value.split("_"))
