"""The demand that several proxies see together.

Decides how their samples add up, and when one of them is silent: silence is no idleness. Must not
know how samples travel.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from amphitrite.controlplane.core.scaling.demand import DemandSample
from amphitrite.controlplane.core.scaling.scaling_policy import ScalingPolicy

Samples = Sequence[DemandSample]


def together(by_proxy: Mapping[str, Samples], policy: ScalingPolicy) -> Samples:
    """Samples of all proxies as one sequence, oldest first, as if one proxy had seen everything.

    Up to the newest sample of any. A proxy that has not told about the last moments yet is taken to
    have as much in work as it told last: it tells at once when it is no longer idle.
    """
    several = [samples for samples in by_proxy.values() if samples]
    if len(several) < 2:
        return tuple(several[0]) if several else ()
    end = max(samples[-1].at for samples in several)
    begin = max(min(samples[0].at - samples[0].seconds for samples in several), end - policy.kept_s)
    width = policy.polling_interval_s
    slots = [_Slot() for _ in range(max(math.ceil((end - begin) / width - 1e-6), 1))]
    for samples in several:
        for sample in samples:
            _spread(slots, sample, sample.at - sample.seconds, sample.at, end, width)
        last = samples[-1]
        waiting = DemandSample(end, end - last.at, last.in_flight, last.held)
        _spread(slots, waiting, last.at, end, end, width)
    made = [
        DemandSample(end - n * width, width, one.in_flight, one.held, one.answered, one.busy_s, one.refused)
        for n, one in enumerate(slots)
    ]
    return made[::-1]


def silent(by_proxy: Mapping[str, Samples], live: Iterable[str], now: float, policy: ScalingPolicy) -> tuple[str, ...]:
    """Which of the ``live`` proxies have told nothing lately."""
    return tuple(
        proxy for proxy in sorted(live) if not (samples := by_proxy.get(proxy)) or samples[-1].at < now - policy.stale_s
    )


class _Slot:
    """The sums of one piece of time; ``in_flight`` and ``held``: averages over it."""

    __slots__ = ("answered", "busy_s", "held", "in_flight", "refused")

    def __init__(self) -> None:
        self.in_flight = self.held = self.answered = self.busy_s = self.refused = 0.0


def _spread(slots: list[_Slot], sample: DemandSample, begin: float, end: float, newest: float, width: float) -> None:
    """Adds ``sample`` of the time from ``begin`` to ``end`` to the slots; the first slot ends at
    ``newest``."""
    if end <= begin:
        return
    first, last = int((newest - end) / width), math.ceil((newest - begin) / width - 1e-9)
    for n in range(first, min(last, len(slots))):
        overlap = min(end, newest - n * width) - max(begin, newest - (n + 1) * width)
        if overlap <= 0:
            continue
        slot, part = slots[n], overlap / (end - begin)
        slot.in_flight += sample.in_flight * overlap / width
        slot.held += sample.held * overlap / width
        slot.answered += sample.answered * part
        slot.busy_s += sample.busy_s * part
        slot.refused += sample.refused * part
