"""Rotation of the key pairs that sign scoring tokens: which key signs, when one is added or
removed.

Decides all of it from the existing keys and the time, so no state is needed. A key is published
before it signs, so that every proxy knows it by then. It stays published until the last token that
it signed has expired. Must not know how keys are made or stored, nor what a token looks like.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from amphitrite.dataplane.table.routing_table import Secret

#: The clock difference in seconds that proxies accept in tokens (Envoy's default for jwt_authn).
CLOCK_SKEW_S = 60.0
#: How long a key is published before it signs, in seconds: at most _AHEAD_S, and for a short
#: rotation this share of it.
_AHEAD_S, _AHEAD_SHARE = 3600.0, 0.25


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key pair. ``id``: the ``kid`` of its tokens. ``private_key``: PEM. ``created_at``: seconds
    since the epoch."""

    id: str
    private_key: Secret
    created_at: float


@dataclass(frozen=True, slots=True)
class Schedule:
    """In seconds: ``rotation_s``, how long a key signs; ``lifetime_s``, how long a token
    is valid."""

    rotation_s: float
    lifetime_s: float

    @property
    def ahead_s(self) -> float:
        """How long a key is published before it signs."""
        return min(_AHEAD_S, _AHEAD_SHARE * self.rotation_s)


def signing_key(keys: Iterable[SigningKey], schedule: Schedule, now: float) -> SigningKey | None:
    """The newest key that has been published for long enough; if there is none, the oldest. None
    without keys."""
    ordered = _ordered(keys)
    published = [one for one in ordered if one.created_at + schedule.ahead_s <= now]
    return published[-1] if published else next(iter(ordered), None)


def rotation_due(keys: Iterable[SigningKey], schedule: Schedule, now: float) -> bool:
    """Whether a new key is needed: there is none, or the newest has existed for one rotation."""
    ordered = _ordered(keys)
    return not ordered or ordered[-1].created_at + schedule.rotation_s <= now


def expired_keys(keys: Iterable[SigningKey], schedule: Schedule, now: float) -> tuple[SigningKey, ...]:
    """Keys with no valid tokens left: the next key has signed for longer than a token's
    lifetime."""
    ordered = _ordered(keys)
    kept_s = schedule.ahead_s + schedule.lifetime_s + 2 * CLOCK_SKEW_S
    return tuple(key for key, successor in pairwise(ordered) if successor.created_at + kept_s <= now)


def refresh_after_s(schedule: Schedule) -> float:
    """How long after its issue a client should replace a token: half its lifetime, so there is time
    to retry."""
    return schedule.lifetime_s / 2


def _ordered(keys: Iterable[SigningKey]) -> Sequence[SigningKey]:
    return sorted(keys, key=lambda one: (one.created_at, one.id))
