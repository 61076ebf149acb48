"""Validates a document and returns all its violations at once.

Decides the order of the checks: canonical spelling, JSON Schema, rules between fields. Must not
know files: their reader adds locations. Only this module imports ``jsonschema``, on first use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from amphitrite.schemas.documents import cross_field_rules, inline_deployments, normalization, schema_files
from amphitrite.schemas.documents.violation_messages import full_pattern, violations_for
from amphitrite.schemas.errors import Violation

if TYPE_CHECKING:
    from jsonschema import ValidationError

Path = tuple[str | int, ...]

#: Levels of nesting: more than any schema has, and few enough for recursive functions.
MAX_DEPTH = 64
_FORBIDDEN_CHARACTER = re.compile("[\\x00\\ud800-\\udfff]")


def violations(kind: str, document: object, texts: normalization.Texts) -> list[Violation]:
    """See ``amphitrite.schemas.documents.validate``."""
    forbidden = list(_forbidden_values(document))
    if forbidden:
        return forbidden
    coerced = normalization.coerce(kind, document, texts)
    result = [violation for error in _validator(kind).iter_errors(coerced) for violation in violations_for(error, kind)]
    result.extend(cross_field_rules.check(kind, coerced))
    if kind == "legacy_endpoint" and isinstance(document, Mapping):
        result.extend(_inline_violations(document, texts))
    unique = {(violation.path, violation.message): violation for violation in result}
    return sorted(unique.values(), key=lambda violation: [str(step) for step in violation.path])


def _inline_violations(document: Mapping[str, object], texts: normalization.Texts) -> Iterator[Violation]:
    """Violations of inline deployments, with paths from the root of the document."""
    for index, (kind, deployment, shifted) in enumerate(inline_deployments.inline_deployments(document, texts)):
        for inner in violations(kind, deployment, shifted):
            if inner.path == ("endpoint_name",):
                continue  # the name of the endpoint, which the endpoint's own schema checks
            path = ("deployments", index, *inner.path)
            yield Violation(path, inner.message, inner.hint, about_key=inner.about_key)


@cache
def _validator(kind: str) -> Any:
    from jsonschema import Draft202012Validator, ValidationError, validators

    extend: Any = validators.extend

    def matches(_: object, pattern: str, value: object, __: object) -> Iterator[ValidationError]:
        if isinstance(value, str) and not full_pattern(pattern).search(value):
            yield ValidationError("does not match")

    return extend(Draft202012Validator, {"pattern": matches})(schema_files.schema(kind))


def _forbidden_values(document: object) -> Iterator[Violation]:
    """Values that no document may contain anywhere, because they break storage or recursion."""
    queue: list[tuple[object, Path]] = [(document, ())]
    while queue:
        value, path = queue.pop()
        if len(path) > MAX_DEPTH:
            yield Violation(path[:1], f"the nesting is too deep; allowed: {MAX_DEPTH} levels")
            return
        if isinstance(value, Mapping):
            for key, entry in value.items():
                queue.append((entry, (*path, str(key))))
                if _FORBIDDEN_CHARACTER.search(str(key)):
                    yield Violation(path, "the name of a field must not contain NUL or an unpaired surrogate")
        elif isinstance(value, (list, tuple)):
            queue.extend((entry, (*path, index)) for index, entry in enumerate(value))
        elif isinstance(value, str) and _FORBIDDEN_CHARACTER.search(value):
            yield Violation(path, "must not contain NUL or an unpaired surrogate")
