"""The last reports of the data-plane agents, and the routing table that they wait for.

Decides which agents are live, and when a waiting agent is answered. In memory, for a single control
plane: after a restart every agent reports within seconds. Several control planes share
``store.reports.agent_reports``. Must not know HTTP, plans or the store.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from amphitrite.controlplane.core.observed.observations import AgentReport
from amphitrite.dataplane.table.routing_table import RoutingTable
from amphitrite.dataplane.table.text_codec import TableText

#: How many previous tables are kept: an agent that has one of them gets only the changes.
PREVIOUS_TABLES_MAX = 8
#: Agents report at least every 5 s; after three missed reports an agent is not live.
MAX_AGE_S = 15.0
#: An agent without a report for this many seconds is removed.
FORGET_AFTER_S = 3600.0


@dataclass(frozen=True, slots=True)
class Proxy:
    """The proxy process of an agent, as the agent reports it."""

    pid: int | None
    version: str | None


class Agents(Protocol):
    """The newest report of each agent. Thread-safe. A significant report wakes the reconciler."""

    def report(self, report: AgentReport, proxy: Proxy | None = None) -> None:
        """Replaces the agent's last report."""
        ...

    def forget(self, agent_id: str) -> None:
        """The agent has ended: it is not live, and nothing waits for it any more. Unknown ids are
        ignored."""
        ...

    def live(self, now: float, max_age_s: float = MAX_AGE_S) -> tuple[AgentReport, ...]:
        """Reports at most ``max_age_s`` old at ``now`` (seconds since the epoch), sorted by id."""
        ...

    def all_reports(self) -> tuple[tuple[AgentReport, Proxy], ...]:
        """The reports of all stored agents, live or not, sorted by id."""
        ...


def is_significant(before: AgentReport | None, report: AgentReport) -> bool:
    """Whether the plan may differ because of the new report."""
    if before is None or report.seen_at - before.seen_at > MAX_AGE_S:
        return True
    return replace(before, seen_at=report.seen_at) != report


class AgentRegistry:
    """Implements ``Agents`` in memory. ``wake`` is called for a significant report."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._lock = threading.Lock()
        self._entries: dict[str, tuple[AgentReport, Proxy]] = {}

    def report(self, report: AgentReport, proxy: Proxy | None = None) -> None:
        with self._lock:
            before = self._entries.get(report.id)
            self._entries[report.id] = (report, proxy or Proxy(None, None))
            for agent, (old, _) in list(self._entries.items()):
                if report.seen_at - old.seen_at > FORGET_AFTER_S:
                    del self._entries[agent]
        if is_significant(before[0] if before is not None else None, report):
            self._wake()

    def forget(self, agent_id: str) -> None:
        with self._lock:
            entry = self._entries.pop(agent_id, None)
        if entry is not None:
            self._wake()

    def live(self, now: float, max_age_s: float = MAX_AGE_S) -> tuple[AgentReport, ...]:
        with self._lock:
            reports = [report for report, _ in self._entries.values() if now - report.seen_at <= max_age_s]
        return tuple(sorted(reports, key=lambda report: report.id))

    def all_reports(self) -> tuple[tuple[AgentReport, Proxy], ...]:
        with self._lock:
            return tuple(sorted(self._entries.values(), key=lambda entry: entry[0].id))


class TableFeed:
    """The routing table in force, for agents that wait for a newer one. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._table: RoutingTable | None = None
        self._previous: dict[int, RoutingTable] = {}
        self._closed = False
        self.text = TableText()

    def published(self, table: RoutingTable) -> None:
        """``table`` is now the newest, unless a newer one is known. Answers all that wait
        for it."""
        with self._changed:
            if self._table is None or table.version >= self._table.version:
                if self._table is not None and self._table is not table:
                    self._previous = {**self._previous, self._table.version: self._table}
                    while len(self._previous) > PREVIOUS_TABLES_MAX:
                        del self._previous[min(self._previous)]
                self._table = table
                self._changed.notify_all()

    def previous_table(self, version: int) -> RoutingTable | None:
        """The table of ``version``, if it is one of the last few."""
        with self._changed:
            return self._previous.get(version)

    def has_table(self) -> bool:
        """Whether there is a table yet."""
        with self._changed:
            return self._table is not None

    def wait(self, after: int, timeout_s: float) -> RoutingTable | None:
        """The newest table once its version is greater than ``after``; None after ``timeout_s`` or
        ``close``."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while True:
                if self._table is not None and self._table.version > after:
                    return self._table
                left = deadline - time.monotonic()
                if self._closed or left <= 0:
                    return None
                self._changed.wait(left)

    def close(self) -> None:
        """Answers all waiting calls, now and later, because the process is shutting down."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
