"""The effect of deleting a deployment on the traffic of its endpoint.

Decides when a deployment cannot be deleted, and the remaining traffic if deletion is forced. Must
not know the store, HTTP or how a deployment drains.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amphitrite.controlplane.core.desired.resources import traffic_shares
from amphitrite.schemas.errors import Violation
from amphitrite.schemas.names import key

Document = Mapping[str, Any]


def check_removal(endpoint: Document, deployment: str) -> list[Violation]:
    """Why ``deployment`` cannot be deleted now: its share of the traffic would have no target."""
    violations = []
    command, forced = f"run `ml online-endpoint update -n {endpoint['name']}", "or delete it with --force"
    for name, share in traffic_shares(endpoint.get("traffic")):
        if name == key(deployment):
            message = f"deployment {deployment} receives {share} % of the traffic of endpoint {endpoint['name']}"
            rest = " ".join(f"{n}={p}" for n, p in traffic_without(endpoint, deployment)["traffic"].items())
            hint = f'{command} --traffic "{rest or f"{name}=0"}"` first, {forced}, which does this for you'
            violations.append(Violation(("traffic", name), message, hint))
    for name, share in traffic_shares(endpoint.get("mirror_traffic")):
        if name == key(deployment):
            message = f"deployment {deployment} receives {share} % of the mirrored traffic of {endpoint['name']}"
            hint = f"{command} --mirror-traffic {name}=0` first, {forced}"
            violations.append(Violation(("mirror_traffic", name), message, hint))
    return violations


def traffic_without(endpoint: Document, deployment: str) -> dict[str, Any]:
    """The endpoint's document without ``deployment``.

    Its traffic goes to the others in proportion to their shares, which sum to 100 again. Without
    others there is no traffic. Its mirrored traffic ends.
    """
    removed = key(deployment)
    left = {
        field: {n: int(share) for n, share in (endpoint.get(field) or {}).items() if int(share) and key(n) != removed}
        for field in ("traffic", "mirror_traffic")
    }
    return {**endpoint, **left, "traffic": _to_100(left["traffic"])}


def _to_100(left: Mapping[str, int]) -> dict[str, int]:
    """Scales by largest remainders, so whole numbers sum to 100 and no share is rounded to zero."""
    total = sum(left.values())
    scaled = {name: share * 100 // total for name, share in left.items()}
    by_remainder = sorted(left, key=lambda name: (-(left[name] * 100 % total), name))
    for name in by_remainder[: 100 - sum(scaled.values()) if left else 0]:
        scaled[name] += 1
    return scaled
