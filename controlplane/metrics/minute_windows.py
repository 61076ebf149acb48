"""Counters by minute, from totals that only grow.

Decides which difference belongs to which minute, and what a percentile of a histogram is. Pure.
Must not know how totals are stored or how the result is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from amphitrite.dataplane.metrics.counters import BUCKETS_S, Totals

#: Deployment (empty: none) -> field -> count.
Counters = dict[str, dict[str, float]]

#: Proxies report every few seconds. If a proxy's counters began at most this many seconds before
#: its first row, that row contains everything it has counted.
_NEW_S = 120


def by_minute(
    history: Mapping[str, Sequence[tuple[int, Totals]]], endpoint: str, first: int, last: int
) -> dict[int, Counters]:
    """The counters of all proxies for ``endpoint`` in the minutes ``first`` to ``last``.

    ``history``: rows in order, beginning with the last one before ``first`` if there is one. What a
    proxy counted while it could not report appears in the minute of its next report. The first row
    of a proxy counts in full if its counters began just before, otherwise only as the starting
    point.
    """
    minutes: dict[int, Counters] = {minute: {} for minute in range(first, last + 1)}
    for rows in history.values():
        before: Mapping[str, Mapping[str, float]] | None = None
        for minute, totals in rows:
            now = {deployment: f for (name, deployment), f in totals.counters.items() if _same(name, endpoint)}
            if before is None and minute * 60 - totals.began < _NEW_S:
                before = {}
            if before is not None and minute in minutes:
                _add(minutes[minute], before, now)
            before = now
    return minutes


def sum_counters(parts: Iterable[Counters]) -> Counters:
    """The sum of all ``parts``."""
    whole: Counters = {}
    for part in parts:
        _add(whole, {}, part)
    return whole


def merge(fields: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The sum of the fields of several deployments."""
    whole: dict[str, float] = {}
    for one in fields:
        for name, n in one.items():
            whole[name] = whole.get(name, 0.0) + n
    return whole


def percentile(fields: Mapping[str, float], share: float) -> float | None:
    """The latency in seconds that ``share`` of the requests did not exceed, interpolated within its
    bucket. None without requests. Latencies above the last bound count as that bound."""
    counts = [fields.get(f"le/{index}", 0.0) for index in range(len(BUCKETS_S) + 1)]
    wanted = share * sum(counts)
    if not wanted:
        return None
    passed, lower = 0.0, 0.0
    for bound, count in zip(BUCKETS_S, counts, strict=False):
        if count and passed + count >= wanted:
            return lower + (bound - lower) * (wanted - passed) / count
        passed, lower = passed + count, bound
    return BUCKETS_S[-1]


def latency_count(fields: Mapping[str, float]) -> float:
    """The number of requests in the latency histogram."""
    return sum(n for name, n in fields.items() if name.startswith("le/"))


def _add(into: Counters, before: Mapping[str, Mapping[str, float]], now: Mapping[str, Mapping[str, float]]) -> None:
    for deployment, fields in now.items():
        previous, sums = before.get(deployment, {}), into.setdefault(deployment, {})
        for name, n in fields.items():
            was = previous.get(name, 0.0)
            # Less than before: the counter was dropped and started again.
            more = n - was if n >= was else n
            if more:
                sums[name] = sums.get(name, 0.0) + more


def _same(name: str, other: str) -> bool:
    return name.lower() == other.lower()
