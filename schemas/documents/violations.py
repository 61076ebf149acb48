"""All violations of a document at once, in words that say what was found and what is allowed.

Decides the order of the checks: canonical spelling, JSON Schema, rules between fields. Must not know files: whoever
knows them adds locations. ``jsonschema`` is imported here alone, when first needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from amphitrite.schemas.documents import cross_field_rules, inline_deployments, normalization, schema_files
from amphitrite.schemas.documents.violation_messages import full_pattern, worded
from amphitrite.schemas.errors import Violation

if TYPE_CHECKING:
    from jsonschema import ValidationError

Path = tuple[str | int, ...]

#: Deeper than any schema, and shallow enough for every recursive walk.
MAX_DEPTH = 64
_UNFIT_CHARACTER = re.compile("[\\x00\\ud800-\\udfff]")


def violations(kind: str, document: object, texts: normalization.Texts) -> list[Violation]:
    """See ``amphitrite.schemas.validate``."""
    unfit = list(_unfit(document))
    if unfit:
        return unfit
    coerced = normalization.coerce(kind, document, texts)
    found = [violation for error in _validator(kind).iter_errors(coerced) for violation in worded(error, kind)]
    found.extend(cross_field_rules.check(kind, coerced))
    if kind == "legacy_endpoint" and isinstance(document, Mapping):
        found.extend(_inside(document, texts))
    unique = {(violation.path, violation.message): violation for violation in found}
    return sorted(unique.values(), key=lambda violation: [str(step) for step in violation.path])


def _inside(document: Mapping[str, object], texts: normalization.Texts) -> Iterator[Violation]:
    """Violations of inline deployments, with paths from the root of the whole document."""
    for index, (kind, deployment, shifted) in enumerate(inline_deployments.inline_deployments(document, texts)):
        for inner in violations(kind, deployment, shifted):
            if inner.path == ("endpoint_name",):
                continue  # the endpoint's name, judged there
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


def _unfit(document: object) -> Iterator[Violation]:
    """What no document may hold, wherever it stands; each would break something behind the validation."""
    waiting: list[tuple[object, Path]] = [(document, ())]
    while waiting:
        value, path = waiting.pop()
        if len(path) > MAX_DEPTH:
            yield Violation(path[:1], f"is nested more than {MAX_DEPTH} levels deep")
            return
        if isinstance(value, Mapping):
            for key, entry in value.items():
                waiting.append((entry, (*path, str(key))))
                if _UNFIT_CHARACTER.search(str(key)):
                    yield Violation(path, "has a field whose name holds NUL or half a surrogate pair")
        elif isinstance(value, (list, tuple)):
            waiting.extend((entry, (*path, index)) for index, entry in enumerate(value))
        elif isinstance(value, str) and _UNFIT_CHARACTER.search(value):
            yield Violation(path, "must not hold NUL or half a surrogate pair")
