"""Rules between fields of one document that a JSON Schema cannot express.

Decides only what depends on one document. Must not know other resources: the control plane checks
rules between resources. Takes any object; a rule does not report fields of the wrong type, because
the JSON Schema does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from amphitrite.schemas.errors import Violation

_SCALED = (
    *("min_instances", "max_instances", "polling_interval", "target_utilization_percentage"),
    *("idle_timeout", "mode"),
)


def check(kind: str, document: object) -> Iterator[Violation]:
    """Violations of the rules for ``kind``."""
    if not isinstance(document, Mapping):
        return
    if kind.endswith("endpoint"):
        yield from _traffic(document)
        yield from _identity(document)
    if kind == "legacy_endpoint":
        yield from _legacy(document)
    if kind.endswith("online_deployment"):
        yield from _scale(document)
    if kind == "environment":
        yield from _environment(document)


def _shares(value: object) -> dict[str, int] | None:
    """The traffic map; None if the JSON Schema refuses it."""
    if not isinstance(value, Mapping):
        return None
    is_valid = all(type(share) is int and 0 <= share <= 100 for share in value.values())
    return dict(value) if is_valid else None


def _duplicate_names(names: Iterable[tuple[tuple[str | int, ...], object]]) -> Iterator[Violation]:
    """A violation for each name that equals an earlier one without regard to case."""
    seen: dict[str, str] = {}
    for path, name in names:
        if isinstance(name, str):
            first = seen.setdefault(name.lower(), name)
            if first is not name:
                yield Violation(
                    path,
                    f'"{name}" is the same name as "{first}", because case is ignored',
                    "remove one of the two",
                )


def _traffic(document: Mapping[str, Any]) -> Iterator[Violation]:
    traffic = _shares(document.get("traffic"))
    mirror = _shares(document.get("mirror_traffic"))
    if traffic:
        yield from _duplicate_names([(("traffic", name), name) for name in traffic])
        total = sum(traffic.values())
        if total not in (0, 100):
            listed = ", ".join(f"{name}={share}" for name, share in traffic.items())
            yield Violation(
                ("traffic",),
                f"the percentages must sum to 0 or 100; found {listed}, which sum to {total}",
                _missing_share(total),
            )
    if mirror:
        yield from _duplicate_names([(("mirror_traffic", name), name) for name in mirror])
    live = {name.lower() for name, share in (traffic or {}).items() if share}
    for name, share in (mirror or {}).items():
        if share and name.lower() in live:
            yield Violation(
                ("mirror_traffic", name),
                f"{name} has live traffic; a deployment cannot have both live and mirrored traffic",
                f"set {name} to 0 in traffic or in mirror_traffic",
            )


def _missing_share(total: int) -> str:
    return f"add {100 - total} percent" if total < 100 else f"remove {total - 100} percent"


def _identity(document: Mapping[str, Any]) -> Iterator[Violation]:
    identity = document.get("identity")
    if not isinstance(identity, Mapping):
        return
    assigned = identity.get("user_assigned_identities")
    if identity.get("type") == "user_assigned" and not assigned:
        path = ("identity", "user_assigned_identities")
        yield Violation(path, "required for type user_assigned, but missing", "add the resource_id of the identity")
    if assigned and identity.get("type") in ("system_assigned", "none"):
        path = ("identity", "user_assigned_identities")
        yield Violation(path, f"not allowed for type {identity['type']}", "set type to user_assigned")


def _scale(document: Mapping[str, Any]) -> Iterator[Violation]:
    settings = document.get("scale_settings")
    if not isinstance(settings, Mapping):
        return
    if settings.get("type") == "default":
        for name in _SCALED:
            if name in settings:
                path = ("scale_settings", name)
                yield Violation(path, "not allowed for type default", "set type to target_utilization")
    minimum, maximum = settings.get("min_instances"), settings.get("max_instances", 1)
    if type(minimum) is int and type(maximum) is int and minimum > maximum:
        yield Violation(
            ("scale_settings", "min_instances"), f"must be at most max_instances {maximum}; found {minimum}"
        )


def _environment(document: Mapping[str, Any]) -> Iterator[Violation]:
    """An environment has an image, with an optional conda specification, or a build."""
    if document.get("build") is None:
        if "image" not in document:
            yield Violation(("image",), "required, but missing", "add the container image, with registry and tag")
        return
    for field in ("image", "conda_file"):
        if document.get(field) is not None:
            yield Violation((field,), "not allowed together with build", "remove one of the two")


def _legacy(document: Mapping[str, Any]) -> Iterator[Violation]:
    if document.get("compute") is not None and "public_network_access" in document:
        yield Violation(("public_network_access",), "not allowed together with compute", "remove one of the two")
    deployments = document.get("deployments")
    if isinstance(deployments, list):
        names = [
            (("deployments", index, "name"), deployment.get("name"))
            for index, deployment in enumerate(deployments)
            if isinstance(deployment, Mapping)
        ]
        yield from _duplicate_names(names)
        yield from _endpoint_names(document.get("name"), deployments)


def _endpoint_names(name: object, deployments: list[Any]) -> Iterator[Violation]:
    for index, deployment in enumerate(deployments):
        other = deployment.get("endpoint_name") if isinstance(deployment, Mapping) else None
        if isinstance(other, str) and isinstance(name, str) and other.lower() != name.lower():
            path = ("deployments", index, "endpoint_name")
            yield Violation(path, f'must be "{name}" or absent; found "{other}"', "remove it")
