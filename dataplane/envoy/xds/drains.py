"""What is on its way out of the proxy, and since which table.

Decides when something counts as drained: nothing in flight on it for a moment, or its time is over, counted from the
acknowledgement of the routes that no longer name it. Must not know how requests are counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from amphitrite.dataplane.envoy.xds.update_stages import DrainTarget

#: Longer than the longest pause before a retry (``retry_back_off`` of the routes): a request in that pause is in flight
#: but counted nowhere.
_IDLE_S = 0.3
#: Stands for what an earlier agent was draining when it died; nobody knows any more what that was.
_UNKNOWN = DrainTarget("")


@dataclass(slots=True)
class _Drain:
    """``before``: the newest acknowledged table that still named it. Times are of the monotonic clock."""

    before: int
    deadline: float
    idle_since: float | None = None


class DrainTracker:
    """The bookkeeping; ``now`` is always the caller's monotonic time in seconds."""

    def __init__(self) -> None:
        self._drains: dict[DrainTarget, _Drain] = {}

    def add_unknown(self, before: int, timeout_s: float, now: float) -> None:
        """Hold back for ``timeout_s``: an earlier agent had not seen everything drained."""
        self._drains[_UNKNOWN] = _Drain(before, now + timeout_s)

    def acknowledged(self, draining: Mapping[DrainTarget, float], before: int, now: float) -> None:
        """A table is in force: these are what it no longer names, with their time to drain in seconds."""
        kept = {key: drain for key, drain in self._drains.items() if key in draining or key == _UNKNOWN}
        new = {k: _Drain(before, now + timeout) for k, timeout in draining.items() if k not in kept}
        self._drains = {**kept, **new}

    def observe(self, active: Mapping[DrainTarget, int], now: float) -> set[DrainTarget]:
        """Requests in flight by what is leaving (absent: not known). Returns, and forgets, what is drained."""
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
        """Until all deadlines have passed."""
        return max([0.0, *(drain.deadline - now for drain in self._drains.values())])
