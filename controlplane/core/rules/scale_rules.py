"""Rules of the number of instances: fixed, or by ``scale_settings``.

Decides which numbers this server allows, and which properties stand for fields of
``scale_settings``. Must not know what is recommended.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amphitrite.controlplane.core.desired import scale_settings
from amphitrite.controlplane.core.desired.scale_settings import FIELDS, PREFIX, TARGET_UTILIZATION
from amphitrite.schemas.errors import Violation

Document = Mapping[str, Any]
_TEXT = "properties are text: it has the values of the field of scale_settings"


def check(document: Document, instances_max: int) -> list[Violation]:
    """``instances_max``: of one deployment, on this server."""
    violations = _properties(document)
    if violations:
        return violations
    counts: dict[tuple[str, ...], int] = {("instance_count",): int(document.get("instance_count", 1))}
    settings = scale_settings.of_document(document)
    if settings is not None:
        counts[_path(document, "max_instances")] = settings.max_instances
        if settings.min_instances > settings.max_instances:
            message = f"must be at most max_instances {settings.max_instances}; found {settings.min_instances}"
            violations.append(Violation(_path(document, "min_instances"), message, "change one of the two"))
    for path, count in counts.items():
        if count < 1:
            hint = "delete the deployment to stop serving"
            violations.append(Violation(path, f"{count} is too few; allowed: 1 or more", hint))
        if count > instances_max:
            name = "instances_per_deployment"
            raise_it = (
                f"the limit {name} is {instances_max}; raise it with ML_LIMIT_{name.upper()} and restart the server"
            )
            violations.append(Violation(path, f"{count} is too many; at most {instances_max}", raise_it))
    return violations


def _path(document: Document, field: str) -> tuple[str, ...]:
    """Where the document has, or would have, a field of ``scale_settings``."""
    own = f"{PREFIX}{field}"
    return ("properties", own) if own in (document.get("properties") or {}) else ("scale_settings", field)


def _properties(document: Document) -> list[Violation]:
    """Each property must be a field, have one of its values, and not be said twice."""
    given = {name: value for name, value in (document.get("properties") or {}).items() if name.startswith(PREFIX)}
    if not given:
        return []
    violations = []
    settings = document.get("scale_settings") or {}
    for name, value in given.items():
        path, field = ("properties", name), name.removeprefix(PREFIX)
        if field not in FIELDS:
            known = ", ".join(f"{PREFIX}{one}" for one in FIELDS)
            violations.append(Violation(path, "there is no such setting", f"allowed: {known}"))
        elif field != "type" and field in settings:
            violations.append(Violation(path, f"scale_settings has {field} too", "remove one of the two"))
        elif (allowed := _refused(field, str(value))) is not None:
            violations.append(Violation(path, f"found {value!r}; allowed: {allowed}", _TEXT))
    types = {settings.get("type", "default"), given.get(f"{PREFIX}type", "default")}
    if not violations and TARGET_UTILIZATION not in types:
        path = ("properties", min(given))
        hint = f"set scale_settings.type, or the property {PREFIX}type, to {TARGET_UTILIZATION}"
        violations.append(Violation(path, f"not allowed without type {TARGET_UTILIZATION}", hint))
    return violations


def _refused(field: str, value: str) -> str | None:
    """What is allowed, if ``value`` is not."""
    allowed = FIELDS[field]
    if isinstance(allowed, tuple):
        return None if value in allowed else ", ".join(allowed)
    return None if value.isdecimal() and int(value) in allowed else f"{allowed.start} to {allowed.stop - 1}"
