"""The case of Azure ML's enumerations: snake_case in documents, CamelCase in wire bodies.

Decides the wire spelling of each word. Must not know which values a field allows: an unknown word
is converted as well, and the JSON Schema refuses it.
"""

from __future__ import annotations

import re

_WORD = re.compile(r"(.)([A-Z][a-z]+)")
_EDGE = re.compile(r"([a-z0-9])([A-Z])")

#: Words whose wire spelling is not CamelCase.
_IRREGULAR = {"aml_token": "AMLToken", "aad_token": "AADToken"}


def snake(text: str) -> str:
    """``AMLToken``, ``amlToken``, ``AML_TOKEN`` -> ``aml_token``, as Azure ML's SDK does."""
    return _EDGE.sub(r"\1_\2", _WORD.sub(r"\1_\2", text)).replace("__", "_").lower()


def to_document(value: object) -> object:
    """The document's spelling of a wire value; a value that is not text is returned as it is."""
    return snake(value) if isinstance(value, str) else value


def to_wire(value: str) -> str:
    """``system_assigned`` -> ``SystemAssigned``, ``aml_token`` -> ``AMLToken``."""
    return _IRREGULAR.get(value) or "".join(part.capitalize() for part in value.split("_"))


def camel(name: str) -> str:
    """``max_error_rate`` -> ``maxErrorRate``: the name of a field in a wire body."""
    word = to_wire(name)
    return word[:1].lower() + word[1:]
