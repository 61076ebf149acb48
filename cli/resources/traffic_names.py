"""The names in an endpoint's traffic: deployments that must exist, and those that lose their share.

Decides which names are refused before anything is created, and which deployments a change leaves
without traffic although nobody named them. Pure. Must not know who asks.
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


def lost_traffic(before: Mapping[str, Any], after: Mapping[str, Any]) -> str | None:
    """A note about deployments that had live traffic and that ``after`` does not name; None
    without one."""
    named = {key(name) for name in after.get("traffic") or {}}
    lost = {
        name: share for name, share in (before.get("traffic") or {}).items() if int(share) and key(name) not in named
    }
    if not lost:
        return None
    had = ", ".join(f"{name} ({share} % until now)" for name, share in lost.items())
    return f"note: no traffic any more for {had}: a deployment that the traffic does not name gets 0"


def _hint(name: str, known: Collection[str]) -> str:
    near = nearest(name, known)
    named = f"deployments of this endpoint: {', '.join(sorted(known)) or 'none'}"
    return f"did you mean {near}? {named}" if near else named
