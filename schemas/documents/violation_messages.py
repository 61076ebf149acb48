"""Converts the errors of the JSON Schema validator to violations.

Decides messages, hints and suggestions. Must not decide what is valid. Messages quote a value only
if the schema restricts it (a word, a number, a name). They never quote the values of free maps,
which may be secret.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from amphitrite.schemas import casing
from amphitrite.schemas.documents import schema_files
from amphitrite.schemas.errors import MISSING, Violation

if TYPE_CHECKING:
    from jsonschema import ValidationError

_TYPES = {
    "null": "nothing",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "a mapping",
    "array": "a list",
}
_OTHER_KIND = {
    "managed_online_deployment": ("kubernetes_online_deployment", "with type: kubernetes"),
    "kubernetes_online_deployment": ("managed_online_deployment", "with type: managed"),
    "managed_online_endpoint": ("kubernetes_online_endpoint", "with compute: azureml:<name>"),
    "kubernetes_online_endpoint": ("managed_online_endpoint", "without compute"),
}
_QUOTED_LENGTH = 60


def violations_for(error: ValidationError, kind: str) -> Iterator[Violation]:
    """The violations for one error of the validator."""
    path = tuple(error.absolute_path)
    rule = str(error.validator)
    allowed: Any = error.validator_value
    value: Any = error.instance
    schema: Mapping[str, Any] = error.schema if isinstance(error.schema, Mapping) else {}
    hint = schema.get("x-hint")
    if rule == "anyOf":
        yield from _alternative(error, kind)
    elif rule == "additionalProperties":
        for name in value:
            if name not in schema.get("properties", {}):
                yield _unknown_field((*path, name), name, schema["properties"], kind)
    elif rule == "required":
        for name in allowed:
            if name not in value:
                yield Violation((*path, name), MISSING)
    elif rule == "dependentRequired":
        for name, others in allowed.items():
            for other in others:
                if name in value and other not in value:
                    yield Violation(
                        (*path, name), f"requires {other}, which is missing", f"add {other}, or remove {name}"
                    )
    elif "propertyNames" in error.schema_path:
        name = str(value)
        message = _message(rule, allowed, name, hint)
        yield Violation((*path, name), message, hint if rule != "pattern" else None, about_key=True)
    elif rule == "type" and value is None:
        message = f"must be {_TYPES[allowed]}; found nothing"
        yield Violation(path, message, "set a value, or remove the field")
    elif rule == "enum":
        yield Violation(path, _message(rule, allowed, value, hint), _suggestion(value, allowed) or hint)
    elif rule == "pattern":
        yield Violation(path, _message(rule, allowed, value, hint), _reference_suggestion(allowed, value))
    else:
        yield Violation(path, _message(rule, allowed, value, hint), hint)


def full_pattern(pattern: str) -> re.Pattern[str]:
    """A schema's pattern as a regular expression that does not accept a final newline."""
    return re.compile(pattern[:-1] + r"\Z" if pattern.endswith("$") else pattern)


def describe_value(value: object) -> str:
    """A short description of a value: a scalar itself, a container only by its type."""
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, str):
        return json.dumps(value if len(value) <= _QUOTED_LENGTH else value[:_QUOTED_LENGTH] + "...", ensure_ascii=False)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value) if abs(value) < 10**18 else "a number of more than 18 digits"
    if isinstance(value, float):
        return repr(value)
    return f"a {type(value).__name__}"


def _message(rule: str, allowed: Any, value: object, hint: str | None) -> str:
    if rule == "type":
        described = describe_value(value) if not isinstance(value, str) or allowed != "object" else "text"
        return f"must be {_TYPES[allowed]}; found {described}"
    if rule in ("enum", "const"):
        words = [str(word) for word in allowed]
        return f"must be {words[0] if len(words) == 1 else 'one of ' + ', '.join(words)}; found {describe_value(value)}"
    if rule == "pattern":
        return f"found {describe_value(value)}; allowed: {hint or allowed}"
    if rule == "minimum":
        return f"must be at least {allowed}; found {describe_value(value)}"
    if rule == "maximum":
        return f"must be at most {allowed}; found {describe_value(value)}"
    if rule in ("minLength", "maxLength"):
        bound = "at least" if rule == "minLength" else "at most"
        return f"must have {bound} {allowed} character{'s' if allowed != 1 else ''}; found {describe_value(value)}"
    if rule in ("maxProperties", "maxItems") and isinstance(value, (Mapping, list)):
        return f"must have at most {allowed} entr{'ies' if allowed != 1 else 'y'}; found {len(value)}"
    return f"violates the rule {rule}: {allowed}"


def _alternative(error: ValidationError, kind: str) -> Iterator[Violation]:
    """The violations of the alternative for the type of the value, or else the allowed types."""
    branches: dict[object, list[ValidationError]] = {}
    for inner in error.context or ():
        branches.setdefault(inner.relative_schema_path[0], []).append(inner)
    for inners in branches.values():
        if not any(inner.validator == "type" and not inner.relative_path for inner in inners):
            for inner in inners:
                yield from violations_for(inner, kind)
            return
    types = [inner.validator_value for inners in branches.values() for inner in inners if inner.validator == "type"]
    allowed = " or ".join(_TYPES[name] for name in types if isinstance(name, str))
    yield Violation(tuple(error.absolute_path), f"must be {allowed}; found {describe_value(error.instance)}")


def _unknown_field(path: tuple[str | int, ...], name: str, known: Mapping[str, Any], kind: str) -> Violation:
    closest = _closest(name, known)
    resolved = {field: schema_files.resolve(node, schema_files.schema(kind)) for field, node in known.items()}
    writable = [field for field, node in resolved.items() if not node.get("readOnly") and field != "$schema"]
    if closest:
        hint = f'did you mean "{closest}"?'
    elif len(path) == 1 and kind in _OTHER_KIND and name in schema_files.schema(_OTHER_KIND[kind][0])["properties"]:
        hint = f"remove it; only documents {_OTHER_KIND[kind][1]} have this field"
    else:
        hint = f"use one of the fields {', '.join(writable)}"
    return Violation(path, "unknown field", hint, about_key=True)


def _closest(word: str, words: Iterable[str]) -> str | None:
    candidates = list(words)
    normalized = casing.snake(word[:_QUOTED_LENGTH]).replace("-", "_")
    if normalized in candidates:
        return normalized
    return next(iter(difflib.get_close_matches(normalized, candidates, n=1, cutoff=0.6)), None)


def _suggestion(value: object, words: Iterable[Any]) -> str | None:
    closest = _closest(value, [str(word) for word in words]) if isinstance(value, str) else None
    return f'did you mean "{closest}"?' if closest else None


def _reference_suggestion(pattern: str, value: object) -> str | None:
    """A suggestion for a reference without its prefix or its version."""
    corrected = f"{value}@latest" if str(value).startswith("azureml:") else f"azureml:{value}"
    return f'did you mean "{corrected}"?' if full_pattern(pattern).search(corrected) else None
