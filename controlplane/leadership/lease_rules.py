"""Which of several control planes leads.

Decides, from an observed Lease and the time, whether to wait, take over or renew, and until when a
leader may act. Pure: must not know the Kubernetes client or threads. The rules follow Kubernetes'
leader election (package leaderelection of client-go):

- Clocks of machines are never compared. A Lease has expired if it did not change for its duration,
  *by our clock, since we saw it change*.
- A leader counts from *before* it requested its last successful renewal. It stops ``MARGIN_S``
  before anybody else may take over, so that its work in progress ends in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: Seconds that a Lease is valid after its last renewal.
DURATION_S = 10.0
#: Seconds between renewals of a leader, and between attempts of the others.
RENEW_S = 2.0
RETRY_S = 1.0
#: A leader that cannot renew ends its term this many seconds before others may begin theirs.
MARGIN_S = 4.0

Decision = Literal["create", "take", "renew", "wait"]


@dataclass(frozen=True, slots=True)
class Lease:
    """The content of a Lease.

    ``holder``: empty after a release. ``renew_time``: as text, because it is only compared.
    ``revision``: Kubernetes' resourceVersion, which makes a write fail if somebody else has
    written.
    """

    holder: str
    duration_s: float
    renew_time: str
    transitions: int = 0
    revision: str = ""


@dataclass(frozen=True, slots=True)
class Observation:
    """A Lease (None: there is none), and since when it has looked like this, in seconds of our
    monotonic clock."""

    lease: Lease | None
    since: float


def observe(before: Observation | None, lease: Lease | None, now: float) -> Observation:
    """``lease`` as read at ``now``. ``since`` is kept if nobody has renewed the Lease."""
    if before is not None and _renewal(before.lease) == _renewal(lease):
        return Observation(lease, before.since)
    return Observation(lease, now)


def decide(observation: Observation, me: str, now: float) -> Decision:
    """What ``me`` does with the Lease at ``now``."""
    lease = observation.lease
    if lease is None:
        return "create"
    if lease.holder == me:
        return "renew"
    if not lease.holder or now >= observation.since + lease.duration_s:
        return "take"
    return "wait"


def leader_until(requested_at: float) -> float:
    """Until when a replica leads whose renewal, requested at ``requested_at``, succeeded."""
    return requested_at + DURATION_S - MARGIN_S


def _renewal(lease: Lease | None) -> tuple[str, str] | None:
    return None if lease is None else (lease.holder, lease.renew_time)
