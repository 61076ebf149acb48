"""A cache of rows and of the routing table.

Building a thousand endpoints from rows takes longer than everything else in a pass. Decides, by a
few small columns, whether a row or the table has changed since it was read. Only values of
committed transactions are cached. Must not know what the values are used for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from sqlalchemy import ColumnElement, Connection, Table, exists, select, true

from amphitrite.controlplane.core.desired.resources import Deployment, Endpoint
from amphitrite.controlplane.store.sql.tables import deployment_scales, deployments, endpoints, routing_tables
from amphitrite.controlplane.store.state import resource_rows
from amphitrite.dataplane.table.json_codec import from_json
from amphitrite.dataplane.table.routing_table import RoutingTable
from amphitrite.schemas.errors import Error

#: If more rows than this have changed, all rows are read.
_SELECT_MAX = 100
#: Every change of a resource's desired state changes one of these columns: each accepted change is
#: a new generation, and generations of a removed resource are never used again.
_VERSION_COLUMNS = ("generation", "observed_generation", "deleting", "ever_succeeded", "modified_at")

Resource = TypeVar("Resource", Endpoint, Deployment)


class ReadCache:
    """Thread-safe: concurrent readers read equal values, and the last one is cached."""

    def __init__(self) -> None:
        self._endpoints = _Rows(endpoints, (endpoints.c.key,), resource_rows.endpoint)
        self._deployments = _Rows(deployments, (deployments.c.endpoint, deployments.c.key), resource_rows.deployment)
        self._scaled = _Rows(
            deployments,
            (deployments.c.endpoint, deployments.c.key),
            resource_rows.deployment,
            exists().where(
                deployment_scales.c.endpoint == deployments.c.endpoint,
                deployment_scales.c.deployment == deployments.c.key,
            ),
        )
        self._table: RoutingTable | None = None

    def endpoints(self, connection: Connection) -> tuple[Endpoint, ...]:
        """All endpoints, sorted by name."""
        return self._endpoints.read(connection)

    def deployments(self, connection: Connection) -> tuple[Deployment, ...]:
        """All deployments, sorted by endpoint and name."""
        return self._deployments.read(connection)

    def scaled(self, connection: Connection) -> tuple[Deployment, ...]:
        """Those of the deployments that have a scale."""
        return self._scaled.read(connection)

    def table(self, connection: Connection) -> RoutingTable | None:
        """The last published table, None if there is none. A version never stands for two tables.

        Raises Error InternalServerError if it cannot be read.
        """
        cached, version = self._table, connection.execute(select(routing_tables.c.version)).scalar()
        if version is None:
            return None
        if cached is not None and cached.version == version:
            return cached
        content = connection.execute(select(routing_tables.c.content)).scalar()
        if content is None:
            return None
        try:
            return from_json(content)
        except (KeyError, TypeError, ValueError) as exc:
            raise Error("InternalServerError", f"the stored routing table cannot be read: {exc}") from exc

    def keep(self, table: RoutingTable | None) -> RoutingTable | None:
        """Caches ``table``. Call it after the transaction that read or wrote it has been
        committed."""
        self._table = table
        return table


class _Rows(Generic[Resource]):
    def __init__(
        self,
        table: Table,
        names: tuple[ColumnElement[str], ...],
        build: Callable[[resource_rows.Row], Resource],
        only: ColumnElement[bool] | None = None,
    ) -> None:
        self._table, self._names = table, names
        self._only = true() if only is None else only
        self._build: Callable[[resource_rows.Row], Resource] = build
        self._columns = (*names, *(table.c[name] for name in _VERSION_COLUMNS))
        self._cached: Mapping[tuple[Any, ...], Resource] = {}

    def read(self, connection: Connection) -> tuple[Resource, ...]:
        """All resources. Call it inside a transaction that reads one snapshot and writes
        nothing."""
        cached = self._cached
        query = select(*self._columns).where(self._only).order_by(*self._names)
        versions = [tuple(row) for row in connection.execute(query)]
        changed = [row for row in versions if row not in cached]
        new = dict(self._load(connection, changed))
        self._cached = {row: new[row] if row in new else cached[row] for row in versions}
        return tuple(self._cached.values())

    def _load(
        self, connection: Connection, missing: list[tuple[Any, ...]]
    ) -> Iterator[tuple[tuple[Any, ...], Resource]]:
        if not missing:
            return
        query = select(self._table).where(self._only)
        if len(missing) <= _SELECT_MAX:
            query = query.where(self._names[0].in_({row[0] for row in missing}))
        for row in connection.execute(query).mappings():
            yield tuple(row[column] for column in self._columns), self._build(row)
