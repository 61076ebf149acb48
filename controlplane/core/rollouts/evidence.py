"""Evidence against a claim about rates, which may be looked at as often as one likes.

Decides how strong it is. Must not know what is counted: failed requests, or those that are too
slow.

Each kind of evidence is a bet against a claim, whose expected value is at most 1 while the claim is
true, whenever one stops (an e-process; arXiv:2205.14762). By Ville's inequality it ever reaches
``1 / alpha`` with probability ``alpha`` at most. So ``alpha`` bounds the false alarms of a whole
rollout, however often it is looked at, and although the split of the traffic changes on the way.

A ``Watch`` lays a part of its stake at each look, so that a fault which begins late is found nearly
as fast as one from the beginning: what was lost in good times is gone, but the rest is not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

#: How many times worse, or better, the bets suppose a rate to be. Equal parts of the stake are on
#: each.
_FACTORS = (2.0, 3.0, 5.0, 10.0, 30.0)
_NOTHING = -math.inf


@dataclass(frozen=True, slots=True)
class Count:
    """``bad`` of ``total`` requests."""

    total: int = 0
    bad: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.total + other.total, self.bad + other.bad)


@dataclass(frozen=True, slots=True)
class Evidence:
    """``logs``: the natural logarithm of what each bet has become; for each of the factors."""

    logs: tuple[float, ...] = (0.0,) * len(_FACTORS)

    @property
    def log(self) -> float:
        """The natural logarithm of the whole: 0 at the beginning, above ``-ln(alpha)`` enough."""
        return _log_sum(self.logs) - math.log(len(self.logs))

    def is_enough(self, alpha: float) -> bool:
        return self.log >= -math.log(alpha)


@dataclass(frozen=True, slots=True)
class Watch:
    """Evidence whose stake is laid bit by bit: ``1 / (n (n + 1))`` of it at look ``n``.

    ``looks``: those with requests. ``new``, ``other``: what was counted since fresh stakes last
    outweighed all that was left of earlier ones, so since about when the fault has begun.
    """

    logs: tuple[float, ...] = (_NOTHING,) * len(_FACTORS)
    looks: int = 0
    new: Count = field(default_factory=Count)
    other: Count = field(default_factory=Count)

    @property
    def log(self) -> float:
        """The natural logarithm of the whole, with the stake that is not laid yet."""
        laid = _log_sum(self.logs) - math.log(len(self.logs))
        return _log_sum((laid, -math.log(self.looks + 1)))

    def is_enough(self, alpha: float) -> bool:
        return self.log >= -math.log(alpha)


def worse_than_other(watch: Watch, new: Count, other: Count, margin: float) -> Watch:
    """Evidence against: the rate of ``new`` is at most ``1 + margin`` times that of ``other``.

    Given how many bad ones there are together, the share of ``new`` in them is binomial, and at
    most ``q`` if the claim is true. An interval in which one had no requests says nothing.
    """
    if not new.total or not other.total:
        return watch
    weight = (1 + margin) * new.total
    return _look(watch, weight / (weight + other.total), new.bad, other.bad, new, other)


def above(watch: Watch, found: Count, limit: float) -> Watch:
    """Evidence against: the rate is at most ``limit``, between 0 and 1."""
    return _look(watch, limit, found.bad, found.total - found.bad, found, Count()) if found.total else watch


def below(evidence: Evidence, found: Count, limit: float) -> Evidence:
    """Evidence against: the rate is at least ``limit``. So enough of it shows that it is below."""
    gains = _gains(limit, found.bad, found.total - found.bad, tuple(1 / one for one in _FACTORS))
    return Evidence(tuple(log + gain for log, gain in zip(evidence.logs, gains, strict=True)))


def requests_needed(evidence: Evidence, found: Count, limit: float, alpha: float) -> int | None:
    """About how many more requests ``below`` needs if they go on as ``found`` does; None if the
    rate is too near to ``limit`` to be shown below it."""
    rate = found.bad / found.total if found.total else 0.0
    gains = []
    for factor in _FACTORS:
        supposed = _odds(limit, 1 / factor)
        gain = rate * math.log(supposed / limit) + (1 - rate) * math.log((1 - supposed) / (1 - limit))
        gains.append(gain)
    most = max(gains)
    missing = -math.log(alpha) + math.log(len(_FACTORS)) - max(evidence.logs)
    if missing <= 0:
        return 0
    return math.ceil(missing / most) if most > 1e-9 else None


def _look(watch: Watch, share: float, yes: int, no: int, new: Count, other: Count) -> Watch:
    fresh = -math.log((watch.looks + 1) * (watch.looks + 2))
    gains = _gains(share, yes, no, _FACTORS)
    logs = tuple(_log_sum((log, fresh)) + gain for log, gain in zip(watch.logs, gains, strict=True))
    if max(watch.logs) < fresh:
        return Watch(logs, watch.looks + 1, new, other)
    return Watch(logs, watch.looks + 1, watch.new + new, watch.other + other)


def _gains(share: float, yes: int, no: int, factors: tuple[float, ...]) -> tuple[float, ...]:
    """What ``yes`` and ``no`` outcomes add to the logarithm of each bet, whose odds are ``factor``
    times those of ``share`` if it is right."""
    odds = [_odds(share, factor) for factor in factors]
    return tuple(yes * math.log(one / share) + no * math.log((1 - one) / (1 - share)) for one in odds)


def _odds(share: float, factor: float) -> float:
    return factor * share / (factor * share + 1 - share)


def _log_sum(logs: tuple[float, ...]) -> float:
    """The logarithm of the sum."""
    most = max(logs)
    return most if most == _NOTHING else most + math.log(sum(math.exp(one - most) for one in logs))
