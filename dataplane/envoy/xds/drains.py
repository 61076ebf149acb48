"""What is being drained, and since which table.

Decides when a target counts as drained: when no request was in flight on it for a moment, or when
its time is over. The time counts from the acknowledgement of the routes that no longer name it.
Must not know how requests are counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from amphitrite.dataplane.envoy.xds.update_stages import DrainTarget

#: Longer than the longest pause before a retry (``retry_back_off`` of the routes). A request in
#: that pause is in flight, but Envoy counts it nowhere.
_IDLE_S = 0.3
#: Stands for what an earlier agent was draining when it died, which is no longer known.
_UNKNOWN = DrainTarget("")


@dataclass(slots=True)
class _Drain:
    """``before``: the newest acknowledged table that still named the target. Times are of the
    monotonic clock, in seconds."""

    before: int
    deadline: float
    idle_since: float | None = None


class DrainTracker:
    """The targets that are being drained. ``now`` is always the caller's monotonic time in
    seconds."""

    def __init__(self) -> None:
        self._drains: dict[DrainTarget, _Drain] = {}

    def add_unknown(self, before: int, timeout_s: float, now: float) -> None:
        """Wait ``timeout_s``: an earlier agent had not seen everything drained."""
        self._drains[_UNKNOWN] = _Drain(before, now + timeout_s)

    def acknowledge(self, draining: Mapping[DrainTarget, float], before: int, now: float) -> None:
        """A table has come into force. ``draining``: what it no longer names, with the time to
        drain in seconds. ``before``: the version of the table before it."""
        continued = {key: drain for key, drain in self._drains.items() if key in draining or key == _UNKNOWN}
        new = {k: _Drain(before, now + timeout) for k, timeout in draining.items() if k not in continued}
        self._drains = {**continued, **new}

    def observe(self, active: Mapping[DrainTarget, int], now: float) -> set[DrainTarget]:
        """Take in the requests in flight by target; absent: not known. Returns the drained targets
        and forgets them."""
        drained = set()
        for key, drain in self._drains.items():
            if active.get(key) != 0:
                drain.idle_since = None
            elif drain.idle_since is None:
                drain.idle_since = now
            idle = drain.idle_since is not None and now - drain.idle_since >= _IDLE_S
            if idle or now >= drain.deadline:
                drained.add(key)
        for key in drained:
            del self._drains[key]
        return drained

    def outstanding(self) -> frozenset[DrainTarget]:
        return frozenset(self._drains)

    def drained_version(self, acknowledged: int) -> int:
        """The newest table for which nothing is in flight on what it does not name."""
        return min([acknowledged, *(drain.before for drain in self._drains.values())])

    def seconds_left(self, now: float) -> float:
        """The seconds until all deadlines have passed."""
        return max([0.0, *(drain.deadline - now for drain in self._drains.values())])
