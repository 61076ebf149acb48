"""The last reports of data-plane agents, in the database.

Decides when a report is worth a write. Each agent talks to any control plane, and the one that
reconciles needs all reports. Must not know HTTP or plans.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, insert, select, update

from amphitrite.controlplane.agents.agent_registry import FORGET_AFTER_S, MAX_AGE_S, Proxy, is_significant
from amphitrite.controlplane.core.observed.observations import AgentReport
from amphitrite.controlplane.store.sql.tables import agent_reports
from amphitrite.controlplane.store.sql.transactions import Database

#: An unchanged report is written again when the stored one is this old, in seconds: well below
#: ``MAX_AGE_S``.
REFRESH_S = 4.0


class StoredAgents:
    """Implements ``agents.agent_registry.Agents`` on the database.

    Every method raises Error RuntimeUnavailable if the database does not answer. ``wake`` is called
    for a significant report to this process; the database notifies other processes. ``seen_at`` is
    by the clock of the process that got the report, and ``live`` compares it with the caller's
    clock: clocks of control planes may differ by a few seconds.
    """

    def __init__(self, database: Database, wake: Callable[[], None]) -> None:
        self._database, self._wake = database, wake

    def report(self, report: AgentReport, proxy: Proxy | None = None) -> None:
        proxy = proxy or Proxy(None, None)
        with self._database.read() as connection:
            before = _find(connection, report.id)
        significant = is_significant(before[0] if before is not None else None, report)
        if before is not None and not significant and before[1] == proxy and _is_fresh(before[0], report):
            return
        with self._database.write(quiet=not significant) as connection:
            values = _values(report, proxy)
            at = agent_reports.c.id == report.id
            if connection.execute(update(agent_reports).where(at).values(**values)).rowcount == 0:
                connection.execute(insert(agent_reports).values(id=report.id, **values))
                forgotten = agent_reports.c.seen_at < report.seen_at - FORGET_AFTER_S
                connection.execute(delete(agent_reports).where(forgotten))
        if significant:
            self._wake()

    def forget(self, agent_id: str) -> None:
        with self._database.write() as connection:
            deleted = connection.execute(delete(agent_reports).where(agent_reports.c.id == agent_id)).rowcount
        if deleted:
            self._wake()

    def live(self, now: float, max_age_s: float = MAX_AGE_S) -> tuple[AgentReport, ...]:
        return tuple(report for report, _ in self.all_reports() if now - report.seen_at <= max_age_s)

    def all_reports(self) -> tuple[tuple[AgentReport, Proxy], ...]:
        with self._database.read() as connection:
            rows = connection.execute(select(agent_reports).order_by(agent_reports.c.id)).mappings()
            return tuple(_entry(row) for row in rows)


def _is_fresh(stored: AgentReport, report: AgentReport) -> bool:
    return report.seen_at - stored.seen_at < REFRESH_S


def _find(connection: Connection, agent_id: str) -> tuple[AgentReport, Proxy] | None:
    row = connection.execute(select(agent_reports).where(agent_reports.c.id == agent_id)).mappings().first()
    return None if row is None else _entry(row)


def _values(report: AgentReport, proxy: Proxy) -> dict[str, Any]:
    values = asdict(report)
    del values["id"]
    return {**values, "proxy_pid": proxy.pid, "proxy_version": proxy.version}


def _entry(row: RowMapping) -> tuple[AgentReport, Proxy]:
    values = {name: value for name, value in row.items() if name not in ("proxy_pid", "proxy_version")}
    return AgentReport(**values), Proxy(row["proxy_pid"], row["proxy_version"])
