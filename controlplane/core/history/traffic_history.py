"""The traffic of an endpoint over time.

Decides which revisions changed the traffic, and which traffic an undo or a restore brings back.
Must not know deployments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from amphitrite.controlplane.core.history.revisions import Revision
from amphitrite.schemas.errors import Error

Shares = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Shares in percent by deployment, without those of 0."""

    live: Shares
    mirrored: Shares


@dataclass(frozen=True, slots=True)
class TrafficChange:
    """``revision``: the one that made ``after`` out of ``before``."""

    revision: Revision
    before: Traffic
    after: Traffic


def traffic_of(document: Mapping[str, Any]) -> Traffic:
    return Traffic(_shares(document.get("traffic")), _shares(document.get("mirror_traffic")))


def changes(revisions: Sequence[Revision]) -> list[TrafficChange]:
    """The changes of traffic, newest first. ``revisions``: of one endpoint, oldest first.

    The first revision is a change only if it is the endpoint's creation with traffic.
    """
    found = []
    before = Traffic({}, {})
    for number, revision in enumerate(revisions):
        after = traffic_of(revision.document)
        if after != before and (number or revision.cause == "create"):
            found.append(TrafficChange(revision, before, after))
        before = after
    return found[::-1]


def before_last_change(endpoint: str, revisions: Sequence[Revision]) -> Traffic:
    """What an undo brings back. Raises Error UserError without a change."""
    found = changes(revisions)
    if not found:
        raise Error("UserError", f"the traffic of endpoint '{endpoint}' was never changed", target=endpoint)
    return found[0].before


def at_revision(endpoint: str, revisions: Sequence[Revision], number: int) -> Traffic:
    """The traffic in force after revision ``number``. Raises Error ResourceNotFound."""
    for revision in revisions:
        if revision.number == number:
            return traffic_of(revision.document)
    raise Error(
        "ResourceNotFound",
        f"endpoint '{endpoint}' has no revision {number}",
        target=endpoint,
        hint=f"run `ml online-endpoint traffic history -n {endpoint}` to see all",
    )


def with_traffic(document: Mapping[str, Any], traffic: Traffic) -> dict[str, Any]:
    """The document with another traffic."""
    rest = {name: value for name, value in document.items() if name not in ("traffic", "mirror_traffic")}
    shares = {"traffic": dict(traffic.live), "mirror_traffic": dict(traffic.mirrored)}
    return {**rest, **{name: value for name, value in shares.items() if value or document.get(name) is not None}}


def _shares(value: Mapping[str, Any] | None) -> dict[str, int]:
    return {name: int(share) for name, share in sorted((value or {}).items()) if int(share)}
