"""Which of several control planes reconciles.

Decides, from a Lease as it is seen and the time, whether to wait, to take over or to renew, and until when a leader may
act. Pure: must not know Kubernetes' client or threads. Rules as in Kubernetes' own leader election (client-go):

- Clocks are never compared. A Lease has run out when it did not change for its duration *by our own clock, since we saw
  it change*.
- A leader counts from *before* it asked for its last successful renewal, and stops ``MARGIN_S`` before anybody else may
  take over: what it still has under way ends in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: How long a Lease holds after its last renewal (seconds).
DURATION_S = 10.0
#: How often a leader renews, and how often the others look.
RENEW_S = 2.0
LOOK_S = 1.0
#: A leader that could not renew ends its term this long before others may begin theirs.
MARGIN_S = 4.0

Verdict = Literal["create", "take", "renew", "wait"]


@dataclass(frozen=True, slots=True)
class Lease:
    """What a Lease says. ``holder``: empty when it was given back. ``renewed``: its renewTime as text, compared and
    never computed with. ``revision``: Kubernetes' resourceVersion, by which a write refuses to overwrite another's."""

    holder: str
    duration_s: float
    renewed: str
    transitions: int = 0
    revision: str = ""


@dataclass(frozen=True, slots=True)
class Sight:
    """A Lease (None: there is none) and since when it looks like this, in seconds of our own monotonic clock."""

    lease: Lease | None
    since: float


def seen(before: Sight | None, lease: Lease | None, now: float) -> Sight:
    """``lease`` as read at ``now``; it keeps its time while nobody has renewed it."""
    if before is not None and _turn(before.lease) == _turn(lease):
        return Sight(lease, before.since)
    return Sight(lease, now)


def decide(sight: Sight, me: str, now: float) -> Verdict:
    """What ``me`` does about the Lease at ``now``."""
    lease = sight.lease
    if lease is None:
        return "create"
    if lease.holder == me:
        return "renew"
    if not lease.holder or now >= sight.since + lease.duration_s:
        return "take"
    return "wait"


def leads_until(asked_at: float) -> float:
    """Until when one may lead whose renewal, asked for at ``asked_at``, succeeded."""
    return asked_at + DURATION_S - MARGIN_S


def _turn(lease: Lease | None) -> tuple[str, str] | None:
    return None if lease is None else (lease.holder, lease.renewed)
