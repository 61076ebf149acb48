"""What a new document would do to a resource that is there.

Decides whether nothing, a change in place or new instances would follow, and which fields ask for these. Must not know
the store, HTTP, or whether the document would be accepted.
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
    """``retry``: the document is the same, and what has failed is tried again. ``replace``: new instances take over;
    ``reasons``: the fields that they are needed for, sorted."""

    change: Literal["create", "update", "replace", "retry", "none"]
    reasons: tuple[str, ...] = ()


def preview(former: Document | None, document: Document, *, failed: bool, replacing: frozenset[str]) -> Preview:
    """``former``: what is there, None where nothing is; ``failed``: that its last change has. ``replacing``: fields
    whose change needs new instances. Both documents are canonical, without defaults."""
    if former is None:
        return Preview("create")
    changed = {field for field in {*former, *document} if not _same(field, former.get(field), document.get(field))}
    if reasons := changed & replacing:
        return Preview("replace", tuple(sorted(reasons)))
    if changed:
        return Preview("update")
    return Preview("retry" if failed else "none")


def replacing_fields(*, on_cluster: bool) -> frozenset[str]:
    """Of a deployment's document."""
    # On this machine a container alone has a mount path.
    return REPLACES | (REPLACES_PODS if on_cluster else {"model_mount_path"})


def _same(field: str, one: Any, other: Any) -> bool:
    """Instance types compare without case, and an empty part is none."""
    if field == "instance_type" and one and other:
        return key(str(one)) == key(str(other))
    return (None if one == {} else one) == (None if other == {} else other)
