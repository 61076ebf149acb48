"""Compares the answers of recorded exchanges with those of another target, and counts the outcome.

Decides which samples are taken and what counts as what. A few threads wait for answers and compare,
so never more requests than that are at the candidate. Whatever the routing table says when a
sample's turn comes is what counts: a comparison that has ended is not finished. Must not know how
exchanges are recorded, nor who asks for the counts.
"""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from amphitrite.dataplane.comparison.answers import decoded, parse
from amphitrite.dataplane.comparison.verdicts import FAILED, Verdict, compare
from amphitrite.dataplane.envoy.answers import repetition
from amphitrite.dataplane.envoy.answers.exchange import Exchange
from amphitrite.dataplane.envoy.answers.sample_limits import SampleLimits
from amphitrite.dataplane.machine.json_log import log
from amphitrite.dataplane.metrics import answer_counts as counted
from amphitrite.dataplane.metrics.answer_counts import Answers, tensor_name
from amphitrite.dataplane.metrics.counters import Series
from amphitrite.dataplane.table.routing_table import Comparison, InstanceAddress, Route, RoutingTable, Target

#: Threads, and so requests that are repeated at once.
WORKERS = 4


@dataclass(frozen=True, slots=True)
class _Candidate:
    """Where a request is sent again, and for whom that counts."""

    route: Route
    comparison: Comparison
    target: Target
    addresses: tuple[InstanceAddress, ...]

    @property
    def series(self) -> Series:
        return self.route.name, self.target.name


class Comparer:
    """``table``: the routing table in force. All methods may be called from any thread."""

    def __init__(self, table: Callable[[], RoutingTable], clock: Callable[[], float] = time.monotonic) -> None:
        self._table, self._clock = table, clock
        self._lock = threading.Lock()
        self._limits = SampleLimits()
        self._counted: dict[Series, Answers] = {}
        #: None ends a worker. Not bounded itself: ``SampleLimits`` bounds what is in work.
        self._queue: queue.SimpleQueue[Exchange | None] = queue.SimpleQueue()

    def start(self, start_thread: Callable[[str, Callable[[], None]], threading.Thread]) -> None:
        for index in range(WORKERS):
            start_thread(f"compare {index}", self._work)

    def stop(self) -> None:
        """End the threads, each after what it is at."""
        for _ in range(WORKERS):
            self._queue.put(None)

    def enter(self, endpoint: str) -> bool:
        """Whether a sample of this endpoint is taken. Then ``hold`` and ``leave`` or ``submit``
        must follow. One beyond the limits counts as dropped."""
        candidate = _candidate(self._table(), endpoint)
        if candidate is None:
            return False
        with self._lock:
            if self._limits.enter(self._clock()):
                return True
        self._count(candidate.series, {counted.DROPPED: 1})
        return False

    def hold(self, more: int) -> bool:
        """A sample holds ``more`` bytes than before. False: it must ``leave`` as dropped."""
        with self._lock:
            return self._limits.hold(more)

    def leave(self, endpoint: str, held: int, *, dropped: bool) -> None:
        """A sample that has held so many bytes is of no use. ``dropped``: because of a limit."""
        with self._lock:
            self._limits.leave(held)
        candidate = _candidate(self._table(), endpoint) if dropped else None
        if candidate is not None:
            self._count(candidate.series, {counted.DROPPED: 1})

    def submit(self, exchange: Exchange) -> None:
        """Compare it in its turn."""
        self._queue.put(exchange)

    def take(self) -> Mapping[Series, Answers]:
        """What was counted since the last call."""
        with self._lock:
            taken, self._counted = self._counted, {}
        return taken

    def _work(self) -> None:
        while (exchange := self._queue.get()) is not None:
            try:
                self._compare(exchange)
            except Exception as exc:  # Of one sample. The next ones may be fine.
                log("error", "an answer could not be compared", endpoint=exchange.endpoint, error=repr(exc))
            finally:
                self.leave(exchange.endpoint, exchange.size, dropped=False)

    def _compare(self, exchange: Exchange) -> None:
        candidate = _candidate(self._table(), exchange.endpoint)
        if candidate is None:
            return
        path = repetition.upstream_path(exchange.endpoint, exchange.path, candidate.target.score_path)
        try:
            base = parse(decoded(exchange.answer, exchange.answer_coding), exchange.answer_json_length)
        except ValueError:
            path = None
        if path is None:
            self._count(candidate.series, {counted.DROPPED: 1})
            return
        addresses = random.sample(candidate.addresses, len(candidate.addresses))
        answer = repetition.send(addresses, path, exchange.headers, exchange.body, candidate.target.timeout_s)
        verdict = FAILED
        if answer is not None:
            try:
                verdict = compare(base, parse(answer.body, answer.json_length), candidate.comparison.tolerance)
            except ValueError:  # Its answer is none of KServe V2, while the base's is.
                answer = None
        if answer is None and _candidate(self._table(), exchange.endpoint) != candidate:
            return  # Its instances may be gone because they are no longer wanted.
        self._judge(candidate.series, verdict, failed=answer is None)

    def _judge(self, series: Series, verdict: Verdict, *, failed: bool) -> None:
        outcomes = {
            counted.COMPARED: True,
            counted.DIFFER: verdict.differs,
            counted.DISAGREE: verdict.disagrees,
            counted.FAILED: failed,
        }
        differences = {tensor_name(name): largest for name, largest in verdict.differences}
        self._count(series, {name: 1 for name, so in outcomes.items() if so}, differences)

    def _count(self, series: Series, counts: Mapping[str, int], differences: Mapping[str, float] | None = None) -> None:
        with self._lock:
            before = self._counted.get(series, Answers())
            self._counted[series] = counted.add(before, Answers(counts, differences or {}))


def _candidate(table: RoutingTable, endpoint: str) -> _Candidate | None:
    """None: nothing is compared at this endpoint now, or the candidate does not serve."""
    route = next((one for one in table.routes if one.name == endpoint), None)
    if route is None or route.comparison is None:
        return None
    target = next(one for one in route.targets if one.name == route.comparison.candidate)
    addresses = next((c.addresses for c in table.clusters if c.name == target.cluster), ())
    return _Candidate(route, route.comparison, target, addresses) if addresses else None
