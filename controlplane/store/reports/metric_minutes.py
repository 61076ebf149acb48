"""What the proxies have counted, minute by minute, for some hours.

Decides when numbers are worth a write and how long they are kept. Each agent reports to whichever control plane it
reaches, and whoever is asked must know all. Must not know what the numbers mean.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlalchemy import Connection, Row, delete, insert, select, update

from amphitrite.controlplane.store.sql.tables import metric_minutes
from amphitrite.controlplane.store.sql.transactions import Database
from amphitrite.dataplane.metrics.counters import Totals, totals_from_json, totals_to_json

#: How far back a window may begin.
KEEP_S = 6 * 3600
#: Numbers that have not changed are written again when they are this old, so that they are not forgotten.
_REFRESH_MINUTES = 60

#: For each agent its totals at the end of each minute (counted from the epoch) in which they have changed.
History = Mapping[str, Sequence[tuple[int, Totals]]]


class StoredMetrics:
    """One row for each agent and minute, the last totals of that minute. Thread-safe. Every verb raises Error
    RuntimeUnavailable when the database does not answer; none wakes anybody."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, agent_id: str, totals: Totals, now: float) -> None:
        """Take ``totals`` as those of the minute of ``now`` (seconds since the epoch), less what ``key_uses`` keeps."""
        minute, content = int(now // 60), _packed(replace(totals, used={}))
        with self._database.read() as connection:
            newest = _newest(connection, agent_id)
        if newest is not None and newest.content == content and minute - newest.minute < _REFRESH_MINUTES:
            return
        with self._database.write(quiet=True) as connection:
            table = metric_minutes.c
            at = (table.agent == agent_id) & (table.minute == minute)
            if connection.execute(update(metric_minutes).where(at).values(content=content)).rowcount == 0:
                connection.execute(insert(metric_minutes).values(agent=agent_id, minute=minute, content=content))
                connection.execute(delete(metric_minutes).where(table.minute < minute - KEEP_S // 60))

    def newest(self, agents: Sequence[str]) -> dict[str, Totals]:
        """The newest totals of those of ``agents`` that have said any."""
        with self._database.read() as connection:
            found = {agent: _newest(connection, agent) for agent in agents}
        return {agent: _unpacked(row.content) for agent, row in found.items() if row is not None}

    def history(self, first: int, last: int) -> History:
        """The rows of these minutes, and of each agent the last one before them, which theirs are counted from."""
        found: dict[str, list[tuple[int, Totals]]] = {}
        within = metric_minutes.c.minute.between(first, last)
        query = select(metric_minutes).where(within).order_by(metric_minutes.c.agent, metric_minutes.c.minute)
        with self._database.read() as connection:
            for row in connection.execute(query):
                rows = found.setdefault(row.agent, [])
                before = None if rows else _newest(connection, row.agent, before=first)
                rows += [(one.minute, _unpacked(one.content)) for one in (before, row) if one is not None]
        return found


def _newest(connection: Connection, agent: str, before: int = 2**62) -> Row[int, bytes] | None:
    """The last row of ``agent`` before that minute."""
    table = metric_minutes.c
    mine = select(table.minute, table.content).where((table.agent == agent) & (table.minute < before))
    return connection.execute(mine.order_by(table.minute.desc()).limit(1)).first()


def _packed(totals: Totals) -> bytes:
    text = json.dumps(totals_to_json(totals), sort_keys=True, separators=(",", ":"))
    return zlib.compress(text.encode("utf-8"))


def _unpacked(content: bytes) -> Totals:
    return totals_from_json(json.loads(zlib.decompress(content)))
