"""What the data-plane agents last said, and what they are told.

Decides who counts as live, and when a waiting agent is answered. In memory, for a control plane that is alone: once
restarted it hears from every agent within seconds. Several share ``store.agent_reports``. Must not know HTTP, plans or
the store.
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

#: So many former tables are known: an agent that has one of them is told what has changed since.
FORMER_MAX = 8
#: Agents report at least every 5 s; after three missed reports one is not live.
MAX_AGE_S = 15.0
#: An agent not heard of for this long is dropped from memory.
FORGET_AFTER_S = 3600.0


@dataclass(frozen=True, slots=True)
class Proxy:
    """The proxy process beside an agent, as the agent reports it."""

    pid: int | None
    version: str | None


class Agents(Protocol):
    """The newest report of each agent. Thread safe. Whoever reconciles is woken when one says something new."""

    def report(self, report: AgentReport, proxy: Proxy | None = None) -> None:
        """Take ``report`` in place of the agent's last one."""
        ...

    def forget(self, agent_id: str) -> None:
        """It has said goodbye: it is not live, and nothing waits for it any more. An unknown one is no fault."""
        ...

    def live(self, now: float, max_age_s: float = MAX_AGE_S) -> tuple[AgentReport, ...]:
        """Reports not older than ``max_age_s`` at ``now`` (seconds since the epoch), sorted by id."""
        ...

    def known(self) -> tuple[tuple[AgentReport, Proxy], ...]:
        """Every remembered agent, live or not, sorted by id."""
        ...


def is_significant(before: AgentReport | None, report: AgentReport) -> bool:
    """Whether a plan could come out otherwise than with the agent's former report."""
    if before is None or report.seen_at - before.seen_at > MAX_AGE_S:
        return True
    return replace(before, seen_at=report.seen_at) != report


class AgentRegistry:
    """``Agents`` in memory, whose docstrings hold. ``wake`` is called at news."""

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
            known = self._entries.pop(agent_id, None)
        if known is not None:
            self._wake()

    def live(self, now: float, max_age_s: float = MAX_AGE_S) -> tuple[AgentReport, ...]:
        with self._lock:
            reports = [report for report, _ in self._entries.values() if now - report.seen_at <= max_age_s]
        return tuple(sorted(reports, key=lambda report: report.id))

    def known(self) -> tuple[tuple[AgentReport, Proxy], ...]:
        with self._lock:
            return tuple(sorted(self._entries.values(), key=lambda entry: entry[0].id))


class TableFeed:
    """The routing table in force, for whoever waits for a newer one. Thread safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._table: RoutingTable | None = None
        self._former: dict[int, RoutingTable] = {}
        self._closed = False
        self.text = TableText()  #: of the tables that this feed hands out

    def published(self, table: RoutingTable) -> None:
        """``table`` is the newest from now on, unless a newer one is known; answers everybody who waits for it."""
        with self._changed:
            if self._table is None or table.version >= self._table.version:
                if self._table is not None and self._table is not table:
                    self._former = {**self._former, self._table.version: self._table}
                    while len(self._former) > FORMER_MAX:
                        del self._former[min(self._former)]
                self._table = table
                self._changed.notify_all()

    def former(self, version: int) -> RoutingTable | None:
        """What ``version`` was, where that was not long ago."""
        with self._changed:
            return self._former.get(version)

    def known(self) -> bool:
        """Whether there is a table yet."""
        with self._changed:
            return self._table is not None

    def wait(self, after: int, timeout_s: float) -> RoutingTable | None:
        """The newest table as soon as its version is greater than ``after``; None after ``timeout_s`` or ``close``."""
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
        """Answer everybody who waits, now and later: the process wants to end."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
