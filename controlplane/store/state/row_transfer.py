"""Copies all rows of one database into another, of either kind.

Decides which tables hold lasting state, and that rows are only copied into a database without any.
Must not know files, or what the rows mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sqlalchemy import Connection, Table, func, insert, inspect, select, update

from amphitrite.controlplane.store.migrations import current_revision, migrate
from amphitrite.controlplane.store.sql.tables import (
    agent_reports,
    blobs,
    demand_samples,
    deployments,
    leader_terms,
    metadata,
    metric_minutes,
    model_files,
)
from amphitrite.controlplane.store.sql.tables import schema_support as _schema_support
from amphitrite.controlplane.store.sql.transactions import Database
from amphitrite.schemas.errors import Error

Row = Mapping[str, Any]

#: Tables without lasting state: agents report again within seconds, metrics are kept for hours,
#: samples of the demand for minutes, and a leader begins its term anew.
_TRANSIENT = (agent_reports, demand_samples, leader_terms, metric_minutes, _schema_support)
#: Referenced tables come before those that reference them.
TABLES: tuple[Table, ...] = tuple(table for table in metadata.sorted_tables if table not in _TRANSIENT)
_BATCH = 500


def open_existing(url: str) -> Database:
    """A database of this program, migrated to the newest revision.

    Raises Error BadArgument if it is not one, and what ``Database`` raises.
    """
    database = Database(url)
    try:
        with database.read() as connection:
            revision = current_revision(connection)
        if revision is None:
            message = f"{database.place} is not a database of amphitrite"
            raise Error("BadArgument", message, target="database", hint="use the database of a control plane")
        migrate(database)
    except BaseException:
        database.close()
        raise
    return database


def open_empty(url: str) -> Database:
    """A database without rows of this program, with the schema created.

    Raises Error Conflict if it has rows, and what ``Database`` raises.
    """
    database = Database(url)
    try:
        with database.read() as connection:
            if current_revision(connection) is not None:
                require_empty(database, connection)
            elif inspect(connection).get_table_names():
                raise _not_empty(database, "tables of another program")
        migrate(database)
    except BaseException:
        database.close()
        raise
    return database


def require_empty(database: Database, connection: Connection) -> None:
    """Raises Error Conflict if a table has rows."""
    existing = set(inspect(connection).get_table_names())
    for table in TABLES:
        if table.name in existing and connection.execute(select(func.count()).select_from(table)).scalar():
            raise _not_empty(database, f"rows in table {table.name}")


def rows(connection: Connection, table: Table) -> Iterator[Row]:
    """All rows, sorted by primary key, without loading all of them at once."""
    query = select(table).order_by(*table.primary_key.columns)
    for row in connection.execution_options(yield_per=_BATCH).execute(query):
        yield row._asdict()


def insert_rows(connection: Connection, table: Table, given: Iterable[Row]) -> int:
    """Inserts rows and returns their number. Missing columns get the database's default."""
    batch: list[dict[str, Any]] = []
    count = 0
    for row in given:
        batch.append(dict(row))
        count += 1
        if len(batch) == _BATCH:
            connection.execute(insert(table), batch)
            batch.clear()
    if batch:
        connection.execute(insert(table), batch)
    return count


def copy(source: Database, target: Database, *, compute: str | None = None) -> dict[str, int]:
    """Copies every row, read from one snapshot and written in one transaction.

    ``compute``: the compute that deployments of this machine will run on instead. Returns the
    number of rows by table name. Raises Error Conflict (``target`` is no longer empty) or
    RuntimeUnavailable.
    """
    with source.read() as reading, target.write() as writing:
        require_empty(target, writing)
        copied = {table.name: insert_rows(writing, table, rows(reading, table)) for table in TABLES}
        if compute is not None:
            writing.execute(update(deployments).where(deployments.c.compute == "local").values(compute=compute))
    return copied


def digests(connection: Connection) -> list[str]:
    """The digests of all content that rows refer to, sorted."""
    query = select(blobs.c.digest).union(select(model_files.c.digest))
    return sorted(connection.execute(query).scalars())


def _not_empty(database: Database, what: str) -> Error:
    hint = "use an empty database; this one has not been changed"
    return Error("Conflict", f"{database.place} is not empty: it has {what}", target=database.place, hint=hint)
