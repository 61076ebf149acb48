"""The documents of a deployment over time.

Decides which fields a revision changed, and which document a rollback brings back. Must not know
models or instances.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from amphitrite.controlplane.core.history.revisions import Revision
from amphitrite.schemas.errors import Error

#: What a rollback leaves as it is, as Kubernetes' does: how many instances there are is no part of
#: a release.
_KEPT = "instance_count"


@dataclass(frozen=True, slots=True)
class DeploymentChange:
    """``changed``: names of the fields that differ from the revision before; empty for the
    first."""

    revision: Revision
    changed: tuple[str, ...]


def changes(revisions: Sequence[Revision]) -> list[DeploymentChange]:
    """Newest first. ``revisions``: of one deployment, oldest first."""
    found = []
    before: Revision | None = None
    for revision in revisions:
        found.append(DeploymentChange(revision, () if before is None else _changed(before, revision)))
        before = revision
    return found[::-1]


def document_of(target: str, revisions: Sequence[Revision], number: int | None) -> dict[str, Any]:
    """The document that a rollback to revision ``number`` stores; None: to the newest one that says
    something else than the present one, but for the number of instances.

    ``target``: ``endpoint/deployment``. Raises Error ResourceNotFound or UserError.
    """
    present = revisions[-1].document if revisions else {}
    if number is None:
        others = [one for one in revisions if set(_differences(one.document, present)) - {_KEPT}]
        if not others:
            raise Error("UserError", f"deployment {target} has no earlier revision to go back to", target=target)
        found = others[-1]
    else:
        known = {one.number: one for one in revisions}
        if number not in known:
            endpoint, _, name = target.partition("/")
            hint = f"run `ml online-deployment history -n {name} -e {endpoint}` to see those that are kept"
            raise Error("ResourceNotFound", f"deployment {target} has no revision {number}", target=target, hint=hint)
        found = known[number]
    document = {name: value for name, value in found.document.items() if name != _KEPT}
    return {**document, **({_KEPT: present[_KEPT]} if _KEPT in present else {})}


def _changed(before: Revision, after: Revision) -> tuple[str, ...]:
    return tuple(_differences(before.document, after.document))


def _differences(one: Any, other: Any) -> list[str]:
    return sorted(name for name in {*one, *other} if _text(one.get(name)) != _text(other.get(name)))


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
