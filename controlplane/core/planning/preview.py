"""What a new document would change in an existing resource.

Decides whether it would change nothing, change the resource in place or start new instances, and
which fields require new instances. Must not know the store, HTTP, or whether the document is valid.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from amphitrite.controlplane.core.planning.rollout import REPLACES, REPLACES_PODS
from amphitrite.schemas.names import key

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Preview:
    """What a document would change.

    ``retry``: the document is the same and its last change has failed, so it is tried again.
    ``replace``: new instances take over; ``reasons`` are the fields that require them, sorted.
    """

    change: Literal["create", "update", "replace", "retry", "none"]
    reasons: tuple[str, ...] = ()


def preview(former: Document | None, document: Document, *, failed: bool, replacing: frozenset[str]) -> Preview:
    """Compares two canonical documents without defaults.

    ``former``: the existing document, None if the resource is new. ``failed``: its last change
    failed. ``replacing``: the fields whose change requires new instances.
    """
    if former is None:
        return Preview("create")
    changed = {field for field in {*former, *document} if not _same(field, former.get(field), document.get(field))}
    if reasons := changed & replacing:
        return Preview("replace", tuple(sorted(reasons)))
    if changed:
        return Preview("update")
    return Preview("retry" if failed else "none")


def replacing_fields(*, on_cluster: bool) -> frozenset[str]:
    """The fields of a deployment document whose change requires new instances."""
    # On this machine only a custom container has a mount path.
    return REPLACES | (REPLACES_PODS if on_cluster else {"model_mount_path"})


def _same(field: str, one: Any, other: Any) -> bool:
    """Instance types are compared without case, and an empty object equals none."""
    if field == "instance_type" and one and other:
        return key(str(one)) == key(str(other))
    return (None if one == {} else one) == (None if other == {} else other)
