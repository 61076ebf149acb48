"""Converts a document to its canonical form, with the leniency of Azure ML's clients.

Decides which spellings of a value are accepted. Must not refuse anything: it leaves an unknown
spelling as it is, and the JSON Schema, which accepts only the canonical form, refuses it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from amphitrite.schemas import casing
from amphitrite.schemas.documents import schema_files
from amphitrite.schemas.wire.endpoints import INJECTED_IN_ENDPOINTS, without_system_values

Path = tuple[str | int, ...]
Texts = Mapping[Path, str]

_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,18}\s*")
_NUMBER = re.compile(r"\s*[+-]?[0-9]{1,18}(\.[0-9]{1,18})?([eE][+-]?[0-9]{1,3})?\s*")
_BOOLEANS = {
    **dict.fromkeys(("true", "t", "yes", "y", "on", "1"), True),
    **dict.fromkeys(("false", "f", "no", "n", "off", "0"), False),
}


def canonical(kind: str, document: Mapping[str, Any], texts: Texts) -> dict[str, Any]:
    """See ``amphitrite.schemas.documents.normalize``."""
    root = schema_files.schema(kind)
    result = _without_read_only(coerce(kind, document, texts), root, root)
    if kind == "legacy_endpoint":
        from amphitrite.schemas.documents import inline_deployments

        deployments = [
            canonical(deployment_kind, deployment, shifted)
            for deployment_kind, deployment, shifted in inline_deployments.inline_deployments(document, texts)
        ]
        result["deployments"] = deployments
    if kind.endswith("endpoint"):
        return without_system_values(result, INJECTED_IN_ENDPOINTS)
    return without_system_values(result) if kind.endswith("deployment") else dict(result)


def coerce(kind: str, document: object, texts: Texts) -> Any:
    """``document`` with each known spelling made canonical. ``document`` may be any object."""
    root = schema_files.schema(kind)
    return _coerce(document, root, root, (), texts)


def _coerce(value: Any, node: Mapping[str, Any], root: Mapping[str, Any], path: Path, texts: Texts) -> Any:
    node = schema_files.branch(schema_files.resolve(node, root), value, root)
    if isinstance(value, float) and not math.isfinite(value):
        value = str(value)  # not a number in JSON
    if node.get("x-text"):
        value = _text(value, texts.get(path))
    type_name = node.get("type")
    if type_name == "object" and isinstance(value, Mapping):
        return _coerce_object(value, node, root, path, texts)
    if type_name == "array" and isinstance(value, list):
        items = node.get("items", {})
        return [_coerce(item, items, root, (*path, index), texts) for index, item in enumerate(value)]
    if type_name == "integer":
        return _integer(value)
    if type_name == "number" and isinstance(value, str) and _NUMBER.fullmatch(value):
        return float(value)
    if type_name == "boolean" and isinstance(value, str):
        return _BOOLEANS.get(value.lower(), value)
    if "enum" in node and isinstance(value, str) and casing.snake(value) in node["enum"]:
        return casing.snake(value)
    return value


def _coerce_object(
    value: Mapping[Any, Any], node: Mapping[str, Any], root: Mapping[str, Any], path: Path, texts: Texts
) -> dict[str, Any]:
    properties = node.get("properties", {})
    others = node.get("additionalProperties") or {}
    aliases = node.get("x-aliases", {})
    coerced = {}
    for key, entry in value.items():
        name = str(key)
        target = aliases.get(name, name)
        if target in value and target != name:
            target = name  # both names are present: the JSON Schema refuses the alias
        coerced[target] = _coerce(entry, properties.get(target, others), root, (*path, name), texts)
    return coerced


def _integer(value: Any) -> Any:
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    return value


def _text(value: Any, source: str | None) -> Any:
    """The text of a scalar as it was written (``source``), or in JSON if that is unknown."""
    if isinstance(value, bool):
        return source if source is not None else str(value).lower()
    if isinstance(value, float):
        return source if source is not None else repr(value)
    if isinstance(value, int):
        return source if source is not None else str(value)
    return value


def _without_read_only(value: Any, node: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """``value`` without ``$schema`` and read-only fields."""
    node = schema_files.branch(schema_files.resolve(node, root), value, root)
    if isinstance(value, list):
        return [_without_read_only(item, node.get("items", {}), root) for item in value]
    if not isinstance(value, dict):
        return value
    properties = node.get("properties", {})
    others = node.get("additionalProperties") or {}
    result = {}
    for name, entry in value.items():
        below = schema_files.resolve(properties.get(name, others), root)
        if not below.get("readOnly") and not (name == "$schema" and name in properties):
            result[name] = _without_read_only(entry, below, root)
    return result
