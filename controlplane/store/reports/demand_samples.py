"""What agents have counted of scaled deployments, flush by flush, for some minutes.

Decides that a flush that arrives twice counts once, how it is stored, and how it is read in the
order of commits. Agents send to any control plane, and the leader reads. Must not know what the
numbers mean.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, func, insert, select

from amphitrite.controlplane.store.sql.tables import demand_samples
from amphitrite.controlplane.store.sql.transactions import Database

#: The most rows, whatever their age: a leader deletes the old ones, and there may be none.
ROWS_MAX = 50_000


@dataclass(frozen=True, slots=True)
class StoredFlush:
    """``at``: when it arrived, in seconds since the epoch. ``content``: JSON values, as the agent
    has sent them."""

    id: int
    agent: str
    at: float
    content: Any


class StoredSamples:
    """Thread-safe. Every method raises Error RuntimeUnavailable if the database does not answer.
    None of them wakes other processes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, agent: str, flush: int, content: object, now: float) -> bool:
        """Stores a flush. Returns whether it is new."""
        table = demand_samples.c
        with self._database.write(quiet=True) as connection:
            again = select(table.id).where(table.agent == agent, table.flush == flush)
            if connection.execute(again.limit(1)).first() is not None:
                return False
            # No other write overlaps this one, so ids grow in the order of commits.
            number = (connection.execute(select(func.max(table.id))).scalar() or 0) + 1
            text = json.dumps(content, separators=(",", ":"))
            row = {"id": number, "agent": agent, "flush": flush, "at": now, "content": text}
            connection.execute(insert(demand_samples).values(**row))
            connection.execute(delete(demand_samples).where(table.id <= number - ROWS_MAX))
        return True

    def since(self, after: int) -> Sequence[StoredFlush]:
        """The flushes with a greater id, in order."""
        query = select(demand_samples).where(demand_samples.c.id > after).order_by(demand_samples.c.id)
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        return [StoredFlush(row.id, row.agent, row.at, json.loads(row.content)) for row in rows]

    def prune(self, before: float) -> None:
        """Deletes what arrived before that time, but for the newest row: ids never begin again."""
        table = demand_samples.c
        with self._database.write(quiet=True) as connection:
            newest = connection.execute(select(func.max(table.id))).scalar() or 0
            connection.execute(delete(demand_samples).where(table.at < before, table.id < newest))
