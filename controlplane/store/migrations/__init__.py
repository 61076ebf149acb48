"""The schema's history, and bringing a database to its newest revision at start.

Decides when a database is too new for this program. Must not know what the tables are for.

In a rolling upgrade programs of two releases work on one database, and the older ones may even start again on the newer
schema. So the database itself says, in the one row of ``schema_support``, how old a revision's programs may be that
work on it; a revision writes there

- its own name when it takes something away, renames it, narrows it, or needs what older programs do not write;
- nothing, so that the row stays, when it only adds: tables, indexes, columns that are nullable or have a default in the
  database. Older programs name every column that they read or write, and so never see the new ones.
"""

from __future__ import annotations

import logging
from pathlib import Path

from sqlalchemy import Connection, inspect, text

from amphitrite.controlplane.store.sql.tables import REVISION
from amphitrite.controlplane.store.sql.transactions import Database
from amphitrite.schemas.errors import Error

log = logging.getLogger(__name__)


def migrate(database: Database, to: str = REVISION) -> None:
    """Bring the schema to revision ``to``, in one transaction, beside which no other process writes: of several that
    start at once, one does it. A newer schema that this program works on, as the database says, is left as it is.

    Raises Error RuntimeUnavailable (a newer version of the program has been here, and this one cannot work with what it
    left), Unsupported (PostgreSQL with another encoding than UTF-8).
    """
    with database.read() as connection:
        if found_revision(connection) == to:
            return  # The usual start: Alembic, slow to import, is not needed.
    _upgrade(database, to)


def found_revision(connection: Connection) -> str | None:
    """The schema's revision, None for an empty database."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)


def _upgrade(database: Database, to: str) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    with database.write() as connection:
        found = found_revision(connection)
        if found is not None and found not in known:
            if _oldest_supported(connection) in known:
                log.info("the database has the newer schema revision %s, which this version works with", found)
                return
            raise Error(
                "RuntimeUnavailable",
                f"the database has schema revision {found}; this version of amphitrite knows up to {REVISION}",
                target=database.place,
                hint="install the newer version of amphitrite that wrote it",
            )
        _prepare(connection, database.place)
        config.attributes["connection"] = connection
        command.upgrade(config, to)


def _oldest_supported(connection: Connection) -> str | None:
    """The oldest revision whose programs work on this schema; whoever knows its name is not older."""
    if not inspect(connection).has_table("schema_support"):
        return None
    found = connection.execute(text("SELECT oldest FROM schema_support")).scalar()
    return None if found is None else str(found)


def _prepare(connection: Connection, place: str) -> None:
    if connection.dialect.name != "postgresql":
        return
    encoding = connection.execute(text("SHOW server_encoding")).scalar()
    if encoding != "UTF8":
        message = f"the database has the encoding {encoding}; it must be UTF8"
        raise Error("Unsupported", message, target=place, hint="CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0")
    connection.execute(text("SET LOCAL statement_timeout = 0"))
