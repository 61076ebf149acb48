"""All rows of one database, and bringing them into another, of whichever kind.

Decides which tables are state that lasts, and that rows only ever come into a database that has none. Must not know
files, or what the rows mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sqlalchemy import Connection, Table, func, insert, inspect, select, update

from amphitrite.controlplane.store.migrations import found_revision, migrate
from amphitrite.controlplane.store.sql.tables import (
    agent_reports,
    blobs,
    deployments,
    metadata,
    metric_minutes,
    model_files,
)
from amphitrite.controlplane.store.sql.tables import schema_support as _schema_support
from amphitrite.controlplane.store.sql.transactions import Database
from amphitrite.schemas.errors import Error

Row = Mapping[str, Any]

#: What does not last: agents say within seconds what they said last, and numbers are kept for some hours only.
_PASSING = (agent_reports, metric_minutes, _schema_support)
#: Those that others refer to come first.
TABLES: tuple[Table, ...] = tuple(table for table in metadata.sorted_tables if table not in _PASSING)
_BATCH = 500


def open_existing(url: str) -> Database:
    """A database that is ours already, its schema brought up to date. Raises Error BadArgument when it is not, and what
    ``Database`` raises."""
    database = Database(url)
    try:
        with database.read() as connection:
            revision = found_revision(connection)
        if revision is None:
            message = f"there is nothing of amphitrite's in {database.place}"
            raise Error("BadArgument", message, target="database", hint="name the database of a control plane")
        migrate(database)
    except BaseException:
        database.close()
        raise
    return database


def open_empty(url: str) -> Database:
    """A database without rows of ours, with the schema made. Raises Error Conflict when there are some, and what
    ``Database`` raises."""
    database = Database(url)
    try:
        with database.read() as connection:
            if found_revision(connection) is not None:
                require_empty(database, connection)
            elif inspect(connection).get_table_names():
                raise _not_empty(database, "tables of somebody else's")
        migrate(database)
    except BaseException:
        database.close()
        raise
    return database


def require_empty(database: Database, connection: Connection) -> None:
    """Raises Error Conflict."""
    there = set(inspect(connection).get_table_names())
    for table in TABLES:
        if table.name in there and connection.execute(select(func.count()).select_from(table)).scalar():
            raise _not_empty(database, f"rows in its table {table.name}")


def rows(connection: Connection, table: Table) -> Iterator[Row]:
    """All of them, in the order of their keys, without holding all at once."""
    query = select(table).order_by(*table.primary_key.columns)
    for row in connection.execution_options(yield_per=_BATCH).execute(query):
        yield row._asdict()


def insert_rows(connection: Connection, table: Table, given: Iterable[Row]) -> int:
    """How many. Columns that a row does not name get the database's default."""
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
    """Every row, read as of one moment and written in one transaction: name of the table -> rows. ``compute``: what
    deployments of this machine are to run on from now on.

    Raises Error Conflict when ``target`` is not empty any more, RuntimeUnavailable.
    """
    with source.read() as reading, target.write() as writing:
        require_empty(target, writing)
        copied = {table.name: insert_rows(writing, table, rows(reading, table)) for table in TABLES}
        if compute is not None:
            writing.execute(update(deployments).where(deployments.c.compute == "local").values(compute=compute))
    return copied


def digests(connection: Connection) -> list[str]:
    """Of all content that rows refer to, sorted."""
    query = select(blobs.c.digest).union(select(model_files.c.digest))
    return sorted(connection.execute(query).scalars())


def _not_empty(database: Database, what: str) -> Error:
    hint = "name a database without anything in it; nothing has been changed in this one"
    return Error("Conflict", f"{database.place} is not empty: there are {what}", target=database.place, hint=hint)
