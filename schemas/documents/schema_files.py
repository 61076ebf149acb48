"""Reads the JSON Schema files of this package and makes them self-contained.

Decides how a schema is found and how ``$ref`` is resolved. Must not know the content of any schema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from amphitrite.schemas.documents.kinds import KINDS

_COMMON = "common.schema.json"


@cache
def schema(kind: str) -> dict[str, Any]:
    """See ``documents.load``. References to the common file become local ones."""
    if kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r}; known: {', '.join(KINDS)}")
    definitions = _read(_COMMON)["$defs"]
    document = _with_local_references(_read(f"{kind}.schema.json"))
    needed: dict[str, Any] = {}
    pending = _references(document)
    while pending:
        name = pending.pop()
        if name not in needed:
            needed[name] = definitions[name]
            pending |= _references(definitions[name])
    document["$defs"] = {name: needed[name] for name in sorted(needed)}
    return dict(document)


def resolve(node: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """``node`` with its ``$ref`` resolved.

    Keys beside ``$ref`` take precedence; ``required`` is joined.
    """
    reference = node.get("$ref")
    if reference is None:
        return node
    target = resolve(root["$defs"][reference.removeprefix("#/$defs/")], root)
    beside = {key: value for key, value in node.items() if key != "$ref"}
    merged = {**target, **beside}
    if "required" in target and "required" in beside:
        merged["required"] = [*beside["required"], *target["required"]]
    return merged


def branch(node: Mapping[str, Any], value: object, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The alternative of an ``anyOf`` for the type of ``value``: text or a mapping."""
    if "anyOf" not in node:
        return node
    type_name = "string" if isinstance(value, str) else "object" if isinstance(value, Mapping) else None
    for alternative in node["anyOf"]:
        resolved = resolve(alternative, root)
        if resolved.get("type") == type_name:
            return resolved
    return node


def _read(name: str) -> dict[str, Any]:
    text = files("amphitrite.schemas").joinpath(name).read_text(encoding="utf-8")
    return dict(json.loads(text))


def _with_local_references(node: Any) -> Any:
    if isinstance(node, dict):
        return {
            key: value.removeprefix(_COMMON) if key == "$ref" else _with_local_references(value)
            for key, value in node.items()
        }
    if isinstance(node, list):
        return [_with_local_references(value) for value in node]
    return node


def _references(node: Any) -> set[str]:
    if isinstance(node, list):
        return set().union(*map(_references, node))
    if not isinstance(node, dict):
        return set()
    names = set().union(*map(_references, node.values()))
    reference = node.get("$ref")
    return names | {reference.removeprefix("#/$defs/")} if isinstance(reference, str) else names
