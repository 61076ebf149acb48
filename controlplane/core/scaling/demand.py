"""The demand on a deployment: how many requests would be in work at once if none had to wait.

Decides it from what proxies count. Must not know instances or policies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DemandSample:
    """What all proxies together counted in the ``seconds`` up to ``at`` (seconds since the epoch).

    - ``in_flight``: requests in work at the end.
    - ``held``: requests that waited for an instance at the end.
    - ``answered``, ``busy_s``: requests that ended, and the sum of their durations.
    - ``refused``: requests above the limit of concurrency.
    """

    at: float
    seconds: float
    in_flight: float
    held: float = 0.0
    answered: float = 0.0
    busy_s: float = 0.0
    refused: float = 0.0

    @property
    def is_idle(self) -> bool:
        return not (self.in_flight or self.held or self.answered or self.refused)


def within(samples: Sequence[DemandSample], now: float, seconds: float) -> Sequence[DemandSample]:
    """The samples of the last ``seconds``. ``samples``: oldest first."""
    first = len(samples)
    while first and samples[first - 1].at > now - seconds:
        first -= 1
    return samples[first:]


def covered_s(samples: Sequence[DemandSample]) -> float:
    """Seconds that the samples are about."""
    return sum(sample.seconds for sample in samples)


def mean_demand(samples: Sequence[DemandSample], duration_s: float) -> float:
    """Requests at once, on average over the samples; 0 without any.

    ``duration_s``: of one request, for those that were refused. Two measurements of the same are
    taken, and the larger one counts: the gauge, which misses what came and went between two
    samples, and Little's law, which misses what has not ended yet. A request longer than the window
    counts in it for the window's length at most.
    """
    seconds = covered_s(samples)
    if not seconds:
        return 0.0
    gauge = sum((sample.in_flight + sample.held) * sample.seconds for sample in samples) / seconds
    ended = sum(min(sample.busy_s, sample.answered * seconds) for sample in samples) / seconds
    refused = sum(sample.refused for sample in samples) * min(duration_s, seconds) / seconds
    return max(gauge, ended) + refused


def mean_duration_s(samples: Sequence[DemandSample]) -> float:
    """Seconds of one request, on average; 0 if none has ended."""
    answered = sum(sample.answered for sample in samples)
    return sum(sample.busy_s for sample in samples) / answered if answered else 0.0


def steady_growth(samples: Sequence[DemandSample], now: float, seconds: float, duration_s: float) -> float:
    """By how many requests the demand grows each second; 0 unless it grew in each of three equal
    parts of the last ``seconds``.

    The smaller of the two steps counts. So a jump is no growth, and a ramp is.
    """
    part = seconds / 3
    recent = within(samples, now, seconds)
    if covered_s(recent) < 0.9 * seconds:
        return 0.0
    parts = [[s for s in recent if now - (n + 1) * part < s.at <= now - n * part] for n in (2, 1, 0)]
    first, second, third = (mean_demand(one, duration_s) for one in parts)
    return max(0.0, min(second - first, third - second)) / part
