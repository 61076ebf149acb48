"""The counters of the proxies, minute by minute, for some hours.

Decides when counters are worth a write and how long they are kept. Each agent reports to any
control plane, and any of them must be able to answer. Must not know what the counters mean.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from sqlalchemy import Connection, delete, insert, select, update

from amphitrite.controlplane.store.sql.tables import metric_minutes
from amphitrite.controlplane.store.sql.transactions import Database
from amphitrite.dataplane.metrics.counters import Totals, totals_from_json, totals_to_json

#: How far back a time window may begin, in seconds.
KEEP_S = 6 * 3600
#: Unchanged counters are written again after this many minutes, so that they are not deleted.
_REFRESH_MINUTES = 60

#: By agent: (minute since the epoch, totals at its end), for each minute in which they changed.
History = Mapping[str, Sequence[tuple[int, Totals]]]


class StoredMinute(NamedTuple):
    """What an agent had counted at the end of a minute since the epoch; ``content``: compressed
    JSON."""

    minute: int
    content: bytes


class StoredMetrics:
    """One row for each agent and minute, with the last totals of that minute.

    Thread-safe. Every method raises Error RuntimeUnavailable if the database does not answer. None
    of them wakes other processes.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, agent_id: str, totals: Totals, now: float) -> None:
        """Stores ``totals`` for the minute of ``now`` (seconds since the epoch), without what
        ``key_uses`` keeps."""
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
        """The newest totals of those ``agents`` that have reported any."""
        with self._database.read() as connection:
            rows = {agent: _newest(connection, agent) for agent in agents}
        return {agent: _unpacked(row.content) for agent, row in rows.items() if row is not None}

    def history(self, first: int, last: int) -> History:
        """The rows of these minutes, and for each agent the last row before them, to count from."""
        history: dict[str, list[tuple[int, Totals]]] = {}
        within = metric_minutes.c.minute.between(first, last)
        query = select(metric_minutes).where(within).order_by(metric_minutes.c.agent, metric_minutes.c.minute)
        with self._database.read() as connection:
            for row in connection.execute(query):
                minutes = history.setdefault(row.agent, [])
                before = None if minutes else _newest(connection, row.agent, before=first)
                minutes += [(one.minute, _unpacked(one.content)) for one in (before, row) if one is not None]
        return history


def _newest(connection: Connection, agent: str, before: int = 2**62) -> StoredMinute | None:
    """Minute and content of the last row of ``agent`` before that minute."""
    table = metric_minutes.c
    of_agent = select(table.minute, table.content).where((table.agent == agent) & (table.minute < before))
    row = connection.execute(of_agent.order_by(table.minute.desc()).limit(1)).first()
    return None if row is None else StoredMinute(row.minute, row.content)


def _packed(totals: Totals) -> bytes:
    text = json.dumps(totals_to_json(totals), sort_keys=True, separators=(",", ":"))
    return zlib.compress(text.encode("utf-8"))


def _unpacked(content: bytes) -> Totals:
    return totals_from_json(json.loads(zlib.decompress(content)))
