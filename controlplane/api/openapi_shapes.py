"""Building blocks of answers in the OpenAPI document.

Decides that shapes are closed: an answer holds nothing that is not described. Must not know any answer.
"""

from __future__ import annotations

from amphitrite.controlplane.api.openapi_wire import Schema

TEXT: Schema = {"type": "string"}
TEXTS: Schema = {"type": "object", "additionalProperties": TEXT}
COUNT: Schema = {"type": "integer", "minimum": 0}
TIME: Schema = {"type": "string", "format": "date-time"}
ANY: Schema = {"type": "object"}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def closed(required: Schema, optional: Schema | None = None) -> Schema:
    """An object with these properties and no others."""
    properties = {**required, **(optional or {})}
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def listed(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def nullable(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def page(item: str) -> Schema:
    return closed({"value": listed(ref(item))}, {"nextLink": {"type": "string", "format": "uri"}})
