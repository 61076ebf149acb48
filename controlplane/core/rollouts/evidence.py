"""Evidence against a claim about rates, which may be looked at as often as one likes.

Decides how strong it is. Must not know what is counted: failed requests, or those that are too
slow.

Each kind of evidence is a bet against a claim, whose expected value is at most 1 while the claim is
true, whenever one stops (an e-process; arXiv:2205.14762). By Ville's inequality it ever reaches
``1 / alpha`` with probability ``alpha`` at most. So ``alpha`` bounds the false alarms of a whole
rollout, however often it is looked at, and although the split of the traffic changes on the way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

#: How many times worse, or better, the bets suppose a rate to be. Equal parts of the stake are on
#: each.
_FACTORS = (2.0, 3.0, 5.0, 10.0, 30.0)


@dataclass(frozen=True, slots=True)
class Count:
    """``bad`` of ``total`` requests."""

    total: int = 0
    bad: int = 0


@dataclass(frozen=True, slots=True)
class Evidence:
    """``logs``: the natural logarithm of what each bet has become; for each of the factors."""

    logs: tuple[float, ...] = (0.0,) * len(_FACTORS)

    @property
    def log(self) -> float:
        """The natural logarithm of the whole: 0 at the beginning, above ``-ln(alpha)`` enough."""
        most = max(self.logs)
        return most + math.log(sum(math.exp(one - most) for one in self.logs) / len(self.logs))

    def is_enough(self, alpha: float) -> bool:
        return self.log >= -math.log(alpha)


def worse_than_other(evidence: Evidence, new: Count, other: Count, margin: float) -> Evidence:
    """Evidence against: the rate of ``new`` is at most ``1 + margin`` times that of ``other``.

    Given how many bad ones there are together, the share of ``new`` in them is binomial, and at
    most ``q`` if the claim is true. An interval in which one had no requests says nothing.
    """
    if not new.total or not other.total:
        return evidence
    weight = (1 + margin) * new.total
    return _bet(evidence, weight / (weight + other.total), new.bad, other.bad, _FACTORS)


def above(evidence: Evidence, found: Count, limit: float) -> Evidence:
    """Evidence against: the rate is at most ``limit``, between 0 and 1."""
    return _bet(evidence, limit, found.bad, found.total - found.bad, _FACTORS)


def below(evidence: Evidence, found: Count, limit: float) -> Evidence:
    """Evidence against: the rate is at least ``limit``. So enough of it shows that it is below."""
    return _bet(evidence, limit, found.bad, found.total - found.bad, tuple(1 / one for one in _FACTORS))


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


def _bet(evidence: Evidence, share: float, yes: int, no: int, factors: tuple[float, ...]) -> Evidence:
    """The stakes after ``yes`` and ``no`` outcomes, whose odds are ``factor`` times those of
    ``share`` if a bet is right."""
    logs = []
    for log, factor in zip(evidence.logs, factors, strict=True):
        supposed = _odds(share, factor)
        logs.append(log + yes * math.log(supposed / share) + no * math.log((1 - supposed) / (1 - share)))
    return Evidence(tuple(logs))


def _odds(share: float, factor: float) -> float:
    return factor * share / (factor * share + 1 - share)
