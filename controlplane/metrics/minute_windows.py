"""What was counted in each minute, from totals that only grow.

Decides which difference belongs to which minute, and what a percentile of a histogram is. Pure. Must not know how
totals are kept or how anybody calls the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from amphitrite.dataplane.metrics.counters import BUCKETS_S, Totals

#: Deployment (empty: none) -> field -> how much was counted.
Counted = dict[str, dict[str, float]]

#: Proxies report every few seconds: one whose numbers begin this long before its first row has told all of them.
_NEW_S = 120


def by_minute(
    history: Mapping[str, Sequence[tuple[int, Totals]]], endpoint: str, first: int, last: int
) -> dict[int, Counted]:
    """What all proxies together have counted for ``endpoint`` in the minutes ``first`` to ``last``.

    ``history``: rows in order, beginning with the one before ``first`` where there is one. What was counted while a
    proxy could not report appears in the minute in which it could again. Of a proxy that has no row before its first,
    that one counts in full when its numbers began just then, and only as a beginning otherwise.
    """
    minutes: dict[int, Counted] = {minute: {} for minute in range(first, last + 1)}
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


def total(parts: Iterable[Counted]) -> Counted:
    """All ``parts`` together."""
    whole: Counted = {}
    for part in parts:
        _add(whole, {}, part)
    return whole


def merged(fields: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The fields of several deployments as if they were one."""
    whole: dict[str, float] = {}
    for some in fields:
        for name, n in some.items():
            whole[name] = whole.get(name, 0.0) + n
    return whole


def percentile(fields: Mapping[str, float], share: float) -> float | None:
    """The latency in seconds that ``share`` of the requests did not exceed, on a straight line within its bucket; None
    without requests. What took longer than the last bound counts as that."""
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


def timed(fields: Mapping[str, float]) -> float:
    """How many requests the latencies are of."""
    return sum(n for name, n in fields.items() if name.startswith("le/"))


def _add(into: Counted, before: Mapping[str, Mapping[str, float]], now: Mapping[str, Mapping[str, float]]) -> None:
    for deployment, fields in now.items():
        known, sums = before.get(deployment, {}), into.setdefault(deployment, {})
        for name, n in fields.items():
            was = known.get(name, 0.0)
            # Less than before: it was dropped and began anew.
            more = n - was if n >= was else n
            if more:
                sums[name] = sums.get(name, 0.0) + more


def _same(name: str, other: str) -> bool:
    return name.lower() == other.lower()
