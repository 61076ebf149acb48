"""Rules for computes and for pod resources that a JSON Schema cannot express.

Decides what a valid compute document may still not contain. Must not know whether the cluster
answers: attaching checks that. Each check returns all violations; the caller raises one error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amphitrite.controlplane.core.capacity import node_capacity
from amphitrite.controlplane.core.desired import instance_types
from amphitrite.controlplane.core.desired.compute_clusters import Compute
from amphitrite.controlplane.core.rules import unsupported_fields
from amphitrite.schemas.errors import Violation
from amphitrite.schemas.names import key

Document = Mapping[str, Any]


def check_compute(document: Document, *, former: Compute | None) -> list[Violation]:
    """Violations of a compute document. ``former``: the existing compute, None if it is new."""
    violations = unsupported_fields.in_compute(document)
    has_kubeconfig, in_cluster = document.get("kubeconfig") is not None, bool(document.get("in_cluster"))
    if has_kubeconfig and in_cluster:
        violations.append(Violation(("in_cluster",), "cannot be set together with kubeconfig", "remove one of them"))
    if former is None and not has_kubeconfig and not in_cluster:
        hint = "use --kubeconfig FILE, or --in-cluster for the cluster that the control plane runs in"
        violations.append(Violation(("kubeconfig",), "required: neither kubeconfig nor in_cluster is set", hint))
    if former is not None and document.get("namespace") != former.namespace:
        message = f"cannot be changed: the instances run in {former.namespace}"
        violations.append(Violation(("namespace",), message, "attach another compute with that namespace"))
    seen: set[str] = set()
    for index, one in enumerate(document.get("instance_types") or ()):
        if key(one["name"]) in seen:
            violations.append(
                Violation(("instance_types", index, "name"), f"{one['name']} is defined twice", "remove one of them")
            )
        seen.add(key(one["name"]))
        violations += quantities(one.get("resources") or {}, ("instance_types", index, "resources"))
    default_type = document.get("default_instance_type")
    if (
        default_type is not None
        and key(default_type) not in seen
        and key(default_type) not in instance_types.INSTANCE_TYPES
    ):
        hint = "use one of instance_types, or one of Azure's types (ml compute list-sizes)"
        violations.append(Violation(("default_instance_type",), f"unknown instance type `{default_type}`", hint))
    return violations


def quantities(resources: Document, path: tuple[str | int, ...]) -> list[Violation]:
    """Violations of ``requests`` and ``limits``: invalid quantities, fractions of devices, requests
    above the limit."""
    violations = []
    parsed: dict[tuple[str, str], Any] = {}
    for side in ("requests", "limits"):
        for name, text in (resources.get(side) or {}).items():
            if text is None:
                continue
            at = (*path, side, name)
            try:
                value = parsed[side, name] = node_capacity.quantity(str(text))
            except ValueError as error:
                violations.append(Violation(at, str(error), "write cores as 500m or 2, memory as 2Gi, devices as 1"))
                continue
            if value < 0 or (("/" in name or name == "gpu") and value.denominator != 1):
                violations.append(
                    Violation(at, f"{text} is not a valid number of {name}", "use a whole number, 0 or more")
                )
    for (side, name), value in parsed.items():
        limit = parsed.get(("limits", name))
        if side == "requests" and limit is not None and value > limit:
            message = f"is more than its limit {resources['limits'][name]}"
            violations.append(Violation((*path, side, name), message, "lower it, or raise the limit"))
        elif side == "requests" and limit is not None and ("/" in name or name == "gpu") and value != limit:
            hint = "set both to the same number: devices are not shared"
            violations.append(Violation((*path, side, name), "differs from its limit", hint))
    return violations
