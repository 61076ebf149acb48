"""Rules between fields of one document, which a JSON Schema cannot say or cannot say well.

Decides only what one document shows by itself; what depends on other resources is the control plane's. Takes any
object, in canonical spelling as far as that was clear: a rule whose fields have the wrong type says nothing, because
the schema does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from amphitrite.schemas.errors import Violation

_SCALED = ("min_instances", "max_instances", "polling_interval", "target_utilization_percentage")


def check(kind: str, document: object) -> Iterator[Violation]:
    """Violations of the rules for ``kind``."""
    if not isinstance(document, Mapping):
        return
    if kind.endswith("endpoint"):
        yield from _traffic(document)
        yield from _identity(document)
    if kind == "legacy_endpoint":
        yield from _legacy(document)
    if kind == "kubernetes_online_deployment":
        yield from _scale(document)
    if kind == "environment":
        yield from _container(document)


def _shares(value: object) -> dict[str, int] | None:
    """A traffic map if it is one that the schema accepts."""
    if not isinstance(value, Mapping):
        return None
    right = all(type(share) is int and 0 <= share <= 100 for share in value.values())
    return dict(value) if right else None


def _twice(names: Iterable[tuple[tuple[str | int, ...], object]]) -> Iterator[Violation]:
    """Names are compared without case, so two that differ only in case are one."""
    seen: dict[str, str] = {}
    for path, name in names:
        if isinstance(name, str):
            first = seen.setdefault(name.lower(), name)
            if first is not name:
                yield Violation(path, f'"{name}" names the same deployment as "{first}"', "remove one of the two")


def _traffic(document: Mapping[str, Any]) -> Iterator[Violation]:
    traffic = _shares(document.get("traffic"))
    mirror = _shares(document.get("mirror_traffic"))
    if traffic:
        yield from _twice([(("traffic", name), name) for name in traffic])
        total = sum(traffic.values())
        if total not in (0, 100):
            listed = ", ".join(f"{name}={share}" for name, share in traffic.items())
            yield Violation(
                ("traffic",), f"{listed} sum to {total}; percentages must sum to 0 or 100", _missing_share(total)
            )
    if mirror:
        yield from _twice([(("mirror_traffic", name), name) for name in mirror])
    live = {name.lower() for name, share in (traffic or {}).items() if share}
    for name, share in (mirror or {}).items():
        if share and name.lower() in live:
            yield Violation(
                ("mirror_traffic", name),
                f"{name} has live traffic: a deployment receives live or mirrored traffic, not both",
                f"set {name} to 0 in traffic or in mirror_traffic",
            )


def _missing_share(total: int) -> str:
    return f"{100 - total} more are needed" if total < 100 else f"{total - 100} are too many"


def _identity(document: Mapping[str, Any]) -> Iterator[Violation]:
    identity = document.get("identity")
    if not isinstance(identity, Mapping):
        return
    assigned = identity.get("user_assigned_identities")
    if identity.get("type") == "user_assigned" and not assigned:
        path = ("identity", "user_assigned_identities")
        yield Violation(path, "required with type user_assigned", "give the resource_id of the identity")
    if assigned and identity.get("type") in ("system_assigned", "none"):
        path = ("identity", "user_assigned_identities")
        yield Violation(path, f"not allowed with type {identity['type']}", "set type to user_assigned")


def _scale(document: Mapping[str, Any]) -> Iterator[Violation]:
    settings = document.get("scale_settings")
    if not isinstance(settings, Mapping):
        return
    if settings.get("type") == "default":
        for name in _SCALED:
            if name in settings:
                path = ("scale_settings", name)
                yield Violation(path, "not allowed with type default", "set type to target_utilization")
    least, most = settings.get("min_instances"), settings.get("max_instances")
    if type(least) is int and type(most) is int and least > most:
        yield Violation(("scale_settings", "min_instances"), f"must be at most max_instances {most}; found {least}")


def _container(document: Mapping[str, Any]) -> Iterator[Violation]:
    """An image is named or built, and a conda specification comes on top of one that is named."""
    if document.get("build") is None:
        if "image" not in document:
            yield Violation(("image",), "required, but missing", "give the container image, with registry and tag")
        return
    for field in ("image", "conda_file"):
        if document.get(field) is not None:
            yield Violation((field,), "not allowed beside build", "remove one of the two")


def _legacy(document: Mapping[str, Any]) -> Iterator[Violation]:
    if document.get("compute") is not None and "public_network_access" in document:
        yield Violation(("public_network_access",), "not a field of Kubernetes endpoints", "remove it, or compute")
    deployments = document.get("deployments")
    if isinstance(deployments, list):
        names = [
            (("deployments", index, "name"), deployment.get("name"))
            for index, deployment in enumerate(deployments)
            if isinstance(deployment, Mapping)
        ]
        yield from _twice(names)
        yield from _endpoint_names(document.get("name"), deployments)


def _endpoint_names(name: object, deployments: list[Any]) -> Iterator[Violation]:
    for index, deployment in enumerate(deployments):
        other = deployment.get("endpoint_name") if isinstance(deployment, Mapping) else None
        if isinstance(other, str) and isinstance(name, str) and other.lower() != name.lower():
            path = ("deployments", index, "endpoint_name")
            yield Violation(path, f'must be "{name}" or left out; found "{other}"', "remove it")
