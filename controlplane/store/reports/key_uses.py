"""When each key of an endpoint, or any token, was last used.

Decides the precision (a minute), when a use is worth a write, and which reported credentials are
current keys of an endpoint. Outlives the proxies. Must not know how proxies detect a use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, delete, insert, select, update

from amphitrite.controlplane.store.sql.tables import endpoints, key_uses
from amphitrite.controlplane.store.sql.transactions import Database
from amphitrite.dataplane.metrics.counters import TOKEN, Use
from amphitrite.dataplane.table.routing_table import Secret
from amphitrite.schemas.names import key

#: Seconds after which a use is forgotten.
KEEP_S = 400 * 86_400


@dataclass(frozen=True, slots=True)
class KeyUse:
    """``key``: primary, secondary or token. ``at``: the start of the minute, in seconds since the
    epoch."""

    endpoint: str
    key: str
    at: int


class KeyUses:
    """Thread-safe. Every method raises Error RuntimeUnavailable if the database does not answer.
    None of them wakes other processes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        #: What this process has written, because proxies repeat their reports.
        self._written: dict[Use, int] = {}

    def put(self, used: Mapping[Use, float], now: float) -> None:
        """``used``: when a proxy last saw each credential authorize a request, in seconds since the
        epoch."""
        minutes = {(key(endpoint), name): int(min(at, now) // 60) for (endpoint, name), at in used.items()}
        newer = {use: minute for use, minute in minutes.items() if minute > self._written.get(use, -1)}
        if not newer:
            return
        table = key_uses.c
        with self._database.write(quiet=True) as connection:
            connection.execute(delete(key_uses).where(table.minute < (now - KEEP_S) // 60))
            stored = {(row.endpoint, row.credential): row.minute for row in connection.execute(select(key_uses))}
            rows = [
                {"of": use[0], "by": use[1], "at": minute}
                for use, minute in newer.items()
                if minute > stored.get(use, -1)
            ]
            changed = [row for row in rows if (row["of"], row["by"]) in stored]
            if changed:
                same = (table.endpoint == bindparam("of")) & (table.credential == bindparam("by"))
                connection.execute(update(key_uses).where(same).values(minute=bindparam("at")), changed)
            added = [row for row in rows if row not in changed]
            if added:
                values: dict[str, Any] = {
                    "endpoint": bindparam("of"),
                    "credential": bindparam("by"),
                    "minute": bindparam("at"),
                }
                connection.execute(insert(key_uses).values(values), added)
        self._written |= newer

    def newest(self, endpoint: str | None = None) -> list[KeyUse]:
        """The last uses of one ``endpoint`` or of all, sorted by endpoint and key.

        Without replaced keys, and without uses of an earlier endpoint of the same name.
        """
        of = endpoints.c
        query = select(of.name, of.primary_key, of.secondary_key, of.created_at, key_uses).join(
            key_uses, key_uses.c.endpoint == of.key
        )
        if endpoint is not None:
            query = query.where(of.key == key(endpoint))
        uses = []
        with self._database.read() as connection:
            for row in connection.execute(query):
                names = {Secret(row.secondary_key).fingerprint(): "secondary", TOKEN: TOKEN}
                names[Secret(row.primary_key).fingerprint()] = "primary"
                if row.credential in names and row.minute >= row.created_at // 60:
                    uses.append(KeyUse(row.name, names[row.credential], row.minute * 60))
        return sorted(uses, key=lambda use: (use.endpoint, use.key))
