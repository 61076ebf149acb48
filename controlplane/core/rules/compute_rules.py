"""Checks of a compute and of what pods ask for that need more than a JSON Schema.

Decides what a valid compute document may still not say. Must not know whether the cluster is there: attaching asks it.
Every check returns violations, all of them; whoever calls raises one error.
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
    """Violations of a compute document; ``former``: the compute that it replaces."""
    found = unsupported_fields.in_compute(document)
    given, inside = document.get("kubeconfig") is not None, bool(document.get("in_cluster"))
    if given and inside:
        found.append(Violation(("in_cluster",), "given besides a kubeconfig; one of the two", "remove one of them"))
    if former is None and not given and not inside:
        hint = "give --kubeconfig FILE, or --in-cluster for the cluster that the control plane runs in"
        found.append(Violation(("kubeconfig",), "required: how is the cluster reached?", hint))
    if former is not None and document.get("namespace") != former.namespace:
        message = f"cannot be changed: instances run in {former.namespace}"
        found.append(Violation(("namespace",), message, "attach another compute with that namespace"))
    seen: set[str] = set()
    for index, one in enumerate(document.get("instance_types") or ()):
        if key(one["name"]) in seen:
            found.append(Violation(("instance_types", index, "name"), f"{one['name']} is there twice", "remove one"))
        seen.add(key(one["name"]))
        found += quantities(one.get("resources") or {}, ("instance_types", index, "resources"))
    wanted = document.get("default_instance_type")
    if wanted is not None and key(wanted) not in seen and key(wanted) not in instance_types.INSTANCE_TYPES:
        hint = "name one of instance_types, or one of Azure's: ml compute list-sizes"
        found.append(Violation(("default_instance_type",), f"unknown instance type `{wanted}`", hint))
    return found


def quantities(resources: Document, path: tuple[str | int, ...]) -> list[Violation]:
    """What is wrong with ``requests`` and ``limits``: no quantities, parts of devices, more than a limit."""
    found = []
    read: dict[tuple[str, str], Any] = {}
    for side in ("requests", "limits"):
        for name, text in (resources.get(side) or {}).items():
            if text is None:
                continue
            at = (*path, side, name)
            try:
                value = read[side, name] = node_capacity.quantity(str(text))
            except ValueError as error:
                found.append(Violation(at, str(error), "cores as 500m or 2, memory as 2Gi, devices as 1"))
                continue
            if value < 0 or (("/" in name or name == "gpu") and value.denominator != 1):
                found.append(Violation(at, f"{text} is no number of {name}", "a whole number from 0"))
    for (side, name), value in read.items():
        limit = read.get(("limits", name))
        if side == "requests" and limit is not None and value > limit:
            message = f"asks for more than its limit {resources['limits'][name]}"
            found.append(Violation((*path, side, name), message, "lower it, or raise the limit"))
        elif side == "requests" and limit is not None and ("/" in name or name == "gpu") and value != limit:
            found.append(
                Violation((*path, side, name), "differs from its limit", "devices are not shared: make them equal")
            )
    return found
