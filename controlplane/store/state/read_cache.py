"""What has been read and still holds.

Decides how it is seen, by a few narrow columns, that a row or the table has not changed since it was read: reading and
building a thousand endpoints takes longer than everything else in a pass. What is remembered comes from committed
transactions only. Must not know what it is read for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from sqlalchemy import ColumnElement, Connection, Table, select

from amphitrite.controlplane.core.desired.resources import Deployment, Endpoint
from amphitrite.controlplane.store.sql.tables import deployments, endpoints, routing_tables
from amphitrite.controlplane.store.state import resource_rows
from amphitrite.dataplane.table.json_codec import from_json
from amphitrite.dataplane.table.routing_table import RoutingTable
from amphitrite.schemas.errors import Error

#: Where more have changed, all are read at once.
_ONE_BY_ONE_MAX = 100
#: Whatever becomes of a resource's desired state changes one of these: each accepted change is a generation, and those
#: of a removed resource are never used again.
_TELLING = ("generation", "observed_generation", "deleting", "ever_succeeded", "modified_at")

Resource = TypeVar("Resource", Endpoint, Deployment)


class Remembered:
    """Thread safe: what threads find is the same, and the last one's is kept."""

    def __init__(self) -> None:
        self._endpoints = _Rows(endpoints, (endpoints.c.key,), resource_rows.endpoint)
        self._deployments = _Rows(deployments, (deployments.c.endpoint, deployments.c.key), resource_rows.deployment)
        self._table: RoutingTable | None = None

    def endpoints(self, connection: Connection) -> tuple[Endpoint, ...]:
        """All, by name."""
        return self._endpoints.read(connection)

    def deployments(self, connection: Connection) -> tuple[Deployment, ...]:
        """All, by endpoint and name."""
        return self._deployments.read(connection)

    def table(self, connection: Connection) -> RoutingTable | None:
        """The table published last: versions only grow, and a version is never another table.

        Raises Error InternalServerError when it cannot be read."""
        known, version = self._table, connection.execute(select(routing_tables.c.version)).scalar()
        if version is None:
            return None
        if known is not None and known.version == version:
            return known
        content = connection.execute(select(routing_tables.c.content)).scalar()
        if content is None:
            return None
        try:
            return from_json(content)
        except (KeyError, TypeError, ValueError) as exc:
            raise Error("InternalServerError", f"the stored routing table cannot be read: {exc}") from exc

    def keep(self, table: RoutingTable | None) -> RoutingTable | None:
        """Call it when the transaction that has read or written ``table`` is committed."""
        self._table = table
        return table


class _Rows(Generic[Resource]):
    def __init__(
        self, table: Table, names: tuple[ColumnElement[str], ...], made: Callable[[resource_rows.Row], Resource]
    ) -> None:
        self._table, self._names = table, names
        self._made: Callable[[resource_rows.Row], Resource] = made
        self._columns = (*names, *(table.c[name] for name in _TELLING))
        self._known: Mapping[tuple[Any, ...], Resource] = {}

    def read(self, connection: Connection) -> tuple[Resource, ...]:
        """Inside a transaction that sees one state and writes nothing."""
        known = self._known
        there = [tuple(row) for row in connection.execute(select(*self._columns).order_by(*self._names))]
        unknown = [row for row in there if row not in known]
        new = dict(self._fresh(connection, unknown))
        self._known = {row: new[row] if row in new else known[row] for row in there}
        return tuple(self._known.values())

    def _fresh(
        self, connection: Connection, wanted: list[tuple[Any, ...]]
    ) -> Iterator[tuple[tuple[Any, ...], Resource]]:
        if not wanted:
            return
        query = select(self._table)
        if len(wanted) <= _ONE_BY_ONE_MAX:
            query = query.where(self._names[0].in_({row[0] for row in wanted}))
        for row in connection.execute(query).mappings():
            yield tuple(row[column] for column in self._columns), self._made(row)
