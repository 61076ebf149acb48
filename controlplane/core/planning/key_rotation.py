"""Which key pair signs scoring tokens, which are told to the proxies, when one comes and when one goes.

Decides all of it from the keys that there are and the time: a key is published before it signs, so that every proxy
knows it by then, and stays published until the last token that it signed has ended. Nobody needs to remember what was
decided last. Must not know how keys are made or stored, nor what a token looks like.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from amphitrite.dataplane.table.routing_table import Secret

#: By how much proxies let their clock differ from the one that wrote a token (seconds; Envoy's default).
CLOCK_SKEW_S = 60.0
#: How long a key is published before it signs, at most; of a short rotation it is this share.
_AHEAD_S, _AHEAD_SHARE = 3600.0, 0.25


@dataclass(frozen=True, slots=True)
class SigningKey:
    """``id``: the ``kid`` of its tokens. ``private_key``: PEM. ``created_at``: seconds since the epoch."""

    id: str
    private_key: Secret
    created_at: float


@dataclass(frozen=True, slots=True)
class Schedule:
    """``rotation_s``: how long one key signs; ``lifetime_s``: how long a token counts."""

    rotation_s: float
    lifetime_s: float

    @property
    def ahead_s(self) -> float:
        """How long a key is published before it signs."""
        return min(_AHEAD_S, _AHEAD_SHARE * self.rotation_s)


def signing(keys: Iterable[SigningKey], schedule: Schedule, now: float) -> SigningKey | None:
    """The newest key that has been published for long enough; the very first one at once. None without keys."""
    known = _ordered(keys)
    ripe = [one for one in known if one.created_at + schedule.ahead_s <= now]
    return ripe[-1] if ripe else next(iter(known), None)


def is_due(keys: Iterable[SigningKey], schedule: Schedule, now: float) -> bool:
    """Whether there must be a new key: there is none, or the newest has signed for long enough when it can follow."""
    known = _ordered(keys)
    return not known or known[-1].created_at + schedule.rotation_s <= now


def spent(keys: Iterable[SigningKey], schedule: Schedule, now: float) -> tuple[SigningKey, ...]:
    """Keys of which no token counts any more: whoever followed them has signed for a token's lifetime and longer."""
    known = _ordered(keys)
    kept_s = schedule.ahead_s + schedule.lifetime_s + 2 * CLOCK_SKEW_S
    return tuple(key for key, successor in pairwise(known) if successor.created_at + kept_s <= now)


def refresh_after_s(schedule: Schedule) -> float:
    """When after its issue a token should be replaced by another: half-way, so that there is time to try again."""
    return schedule.lifetime_s / 2


def _ordered(keys: Iterable[SigningKey]) -> Sequence[SigningKey]:
    return sorted(keys, key=lambda one: (one.created_at, one.id))
