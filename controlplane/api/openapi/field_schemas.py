"""JSON Schemas of wire bodies, from the JSON Schemas of documents and the tables of wire fields.

Decides the wire name and form of each field. For requests, it also decides which other spellings
are accepted (``schemas.documents``). A request's schema cannot express rules about other resources
or other fields. Must not know routes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from amphitrite.schemas import casing, durations
from amphitrite.schemas.documents.schema_files import resolve
from amphitrite.schemas.wire.field_tables import Field

Schema = dict[str, Any]

#: Null and ``{}`` mean the same as a missing field.
ABSENT: tuple[Schema, ...] = ({"type": "null"}, {"type": "object", "maxProperties": 0})
#: No text or name in a body contains NUL.
TEXT: Schema = {"type": "string", "pattern": r"^[^\u0000]*$"}
_KEPT = ("pattern", "minLength", "maxLength", "minimum", "maximum", "description")


def optional(schema: Schema) -> Schema:
    """``schema``, or a value that means a missing field."""
    return {"anyOf": [*schema.get("anyOf", [schema]), *ABSENT]}


def wire_object(fields: Sequence[Field], document: Mapping[str, Any], root: Mapping[str, Any], *, sent: bool) -> Schema:
    """The wire object for the schema ``document``, a part of ``root``.

    ``sent``: the form of answers (``write`` of ``schemas.wire``); otherwise that of requests
    (``read``).
    """
    named: Mapping[str, Any] = document.get("properties", {})
    properties: dict[str, Any] = {}
    required: list[str] = []
    for field in fields:
        if field.name not in named:
            # A field of another kind of this resource. A request may contain it without a value.
            if not sent:
                properties[field.wire] = {"anyOf": list(ABSENT)}
            continue
        found = _field(field, resolve(named[field.name], root), root, sent=sent)
        must = field.name in document.get("required", ())
        if must and not sent:
            required.append(field.wire)
            # An empty object counts as absent.
            found = {"minProperties": 1, **found} if found.get("type") == "object" else found
        properties[field.wire] = found if sent or must else optional(found)
    made: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**made, "required": required} if required else made


def _field(field: Field, node: Mapping[str, Any], root: Mapping[str, Any], *, sent: bool) -> Schema:
    if field.fields:
        return wire_object(field.fields, node, root, sent=sent)
    if field.read is durations.to_seconds:
        return _duration(node, "|".join(_ranges(node["minimum"], node["maximum"])))
    if field.read is durations.to_milliseconds:
        return _duration(node, _milliseconds(node["minimum"], node["maximum"]))
    if "enum" in node:
        camel = [casing.to_wire(word) for word in node["enum"]]
        words = camel if field.write is casing.to_wire else node["enum"]
        # Requests may use any casing. These are the spellings that clients use.
        return {"type": "string", "enum": [*words] if sent else [*dict.fromkeys([*words, *node["enum"], *camel])]}
    return value(node, root, sent=sent)


def value(node: Mapping[str, Any], root: Mapping[str, Any], *, sent: bool) -> Schema:
    """The schema of a value that has the same form in a document and on the wire."""
    node = resolve(node, root)
    if "anyOf" in node:
        return {"anyOf": [value(one, root, sent=sent) for one in node["anyOf"]]}
    if "enum" in node:
        return {"type": "string", "enum": list(node["enum"])}
    kind = node.get("type")
    if kind is None:
        return {}
    if kind == "object":
        return _mapping(node, root, sent=sent)
    if kind == "array":
        items = value(node.get("items", {}), root, sent=sent)
        return {"type": "array", "items": items, **_only(node, ("minItems", "maxItems", "uniqueItems"))}
    plain: Schema = {"type": kind, **_only(node, _KEPT)}
    if kind == "string":
        plain.setdefault("pattern", TEXT["pattern"])
    also = None if sent else _other_spelling(kind, node)
    return plain if also is None else {"anyOf": [plain, also]}


def _other_spelling(kind: str, node: Mapping[str, Any]) -> Schema | None:
    """Other types that a request may use for a value of this type. None if there are none."""
    if kind == "string" and node.get("x-text"):
        return {"type": ["number", "boolean"]}
    if kind == "boolean":
        words = ["true", "t", "yes", "y", "on", "1", "false", "f", "no", "n", "off", "0"]
        return {"type": "string", "pattern": f"^({'|'.join(map(_any_case, words))})$"}
    if kind == "integer":
        return {"type": "string", "pattern": _integers(node.get("minimum"), node.get("maximum"))}
    return None


def _mapping(node: Mapping[str, Any], root: Mapping[str, Any], *, sent: bool) -> Schema:
    named = {name: value(below, root, sent=sent) for name, below in node.get("properties", {}).items()}
    if not sent:
        named |= {alias: named[name] for alias, name in node.get("x-aliases", {}).items() if name in named}
    made: Schema = {"type": "object", **_only(node, ("minProperties", "maxProperties", "required"))}
    if named:
        made["properties"] = named
    others = node.get("additionalProperties")
    if others is not None and others is not True:
        made["additionalProperties"] = others and value(others, root, sent=sent)
    names = node.get("propertyNames")
    made["propertyNames"] = value(names, root, sent=True) if names else TEXT
    return made


def _duration(node: Mapping[str, Any], seconds: str) -> Schema:
    """An ISO 8601 duration in seconds, as clients write it. Minutes, hours and days are accepted
    too."""
    return {"type": "string", "pattern": f"^PT({seconds})S$", "example": "PT5S", **_only(node, ("description",))}


def _integers(least: int | None, most: int | None) -> str:
    """A pattern for text that is read as a whole number from ``least`` to ``most``."""
    sign = "[+]?" if least is not None and least >= 0 else "[+-]?"
    if most is None or least is None:
        return rf"^\s*{sign}[0-9]{{1,18}}\s*$"
    return rf"^\s*{sign}0{{0,8}}({'|'.join(_ranges(least, most))})\s*$"


def _milliseconds(least: int, most: int) -> str:
    """A pattern for seconds with at most three decimals. ``least``: 0 or 1; ``most``:
    milliseconds."""
    decimals = r"([.][0-9]{1,3})?"
    whole = "|".join(_ranges(1, most // 1000 - 1))
    below = rf"0{decimals}" if least == 0 else r"0[.](00[1-9]|0[1-9][0-9]?|[1-9][0-9]{0,2})"
    return f"{below}|({whole}){decimals}|{most // 1000}"


def _ranges(least: int, most: int) -> list[str]:
    """Patterns for the numbers from ``least`` (0 or 1) to ``most``, by number of digits."""
    digits, found = str(most), ["0"] if least == 0 else []
    found += [f"[1-9][0-9]{{{length - 1}}}" for length in range(1, len(digits))]
    for place, digit in enumerate(digits):
        low = 1 if place == 0 else 0
        if int(digit) > low:
            found.append(f"{digits[:place]}[{low}-{int(digit) - 1}][0-9]{{{len(digits) - place - 1}}}")
    return [*found, digits]


def _any_case(word: str) -> str:
    return "".join(f"[{letter}{letter.upper()}]" if letter.isalpha() else letter for letter in word)


def _only(node: Mapping[str, Any], names: Sequence[str]) -> Schema:
    return {name: node[name] for name in names if name in node}
