"""The names in an endpoint's traffic: deployments that must exist, and those that lose their share.

Decides which names are refused before anything is created, which shares are in force, and which
deployments a change leaves without traffic although nobody named them. Pure. Must not know who
asks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from amphitrite.schemas.errors import Error, Violation
from amphitrite.schemas.names import key, nearest

SHARES = ("traffic", "mirror_traffic")


def require_known(document: Mapping[str, Any], known: Collection[str]) -> None:
    """Raises Error InvalidDocument if a name, whatever its share, is not among ``known``.

    The control plane refuses such a name too, but only after the deployments beside it exist.
    """
    keys = {key(name) for name in known}
    violations = [
        Violation((field, name), f"there is no deployment {name}", _hint(name, known))
        for field in SHARES
        for name in document.get(field) or {}
        if key(name) not in keys
    ]
    if violations:
        raise Error("InvalidDocument", str(violations[0]), target=document["name"], violations=violations)


def in_force(endpoint: Mapping[str, Any], field: str) -> Mapping[str, int]:
    """The shares by which requests are divided now. ``endpoint``: as ``show`` prints it.

    They are not those of the document after a change that waits for its deployments, or that has
    failed because of them. ``field``: one of SHARES.
    """
    live = (endpoint.get("status") or {}).get(f"{field}_in_force")
    shares: Mapping[str, int] = endpoint.get(field) or {} if live is None else live
    return shares


def share(shares: Mapping[str, int], name: str) -> int:
    """The percentage of a deployment; 0 if it is not named."""
    return next((int(percent) for other, percent in shares.items() if key(other) == key(name)), 0)


def is_same(one: Mapping[str, int], other: Mapping[str, int]) -> bool:
    """Whether two maps divide requests in the same way: 0 is as good as no name."""
    return all(share(one, name) == share(other, name) for name in (*one, *other))


def lost_traffic(before: Mapping[str, Any], after: Mapping[str, Any]) -> str | None:
    """A note about deployments that had live traffic and that ``after`` does not name; None
    without one. ``before``: the endpoint as ``show`` prints it."""
    named = {key(name) for name in after.get("traffic") or {}}
    lost = {name: share for name, share in in_force(before, "traffic").items() if int(share) and key(name) not in named}
    if not lost:
        return None
    had = ", ".join(f"{name} ({share} % until now)" for name, share in lost.items())
    return f"note: no traffic any more for {had}: a deployment that the traffic does not name gets 0"


def _hint(name: str, known: Collection[str]) -> str:
    near = nearest(name, known)
    named = f"deployments of this endpoint: {', '.join(sorted(known)) or 'none'}"
    return f"did you mean {near}? {named}" if near else named
