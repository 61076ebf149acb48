"""The history of the database schema, and its migration to the newest revision at start.

Decides when a database is too new for this program. Must not know what the tables are for.

During a rolling upgrade, programs of two releases use one database, and older ones may even start
on the newer schema. So the database itself states, in the one row of ``schema_support``, the oldest
revision whose programs work with it. A revision writes there

- its own name if it removes, renames or narrows something, or needs what older programs do not
  write;
- nothing if it only adds tables, indexes, or columns that are nullable or have a default in the
  database. Older programs name every column that they read or write, so they never see new ones.
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
    """Migrates the schema to revision ``to``, in one write transaction: if several processes start
    at once, one of them does it. A newer schema that this program works with, as the database
    states, is left as it is.

    Raises Error RuntimeUnavailable (a newer version wrote a schema that this one cannot use) or
    Unsupported (PostgreSQL with another encoding than UTF-8).
    """
    with database.read() as connection:
        if current_revision(connection) == to:
            return  # The usual case. Alembic, which is slow to import, is not needed.
    _upgrade(database, to)


def current_revision(connection: Connection) -> str | None:
    """The revision of the schema, None for an empty database."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if revision is None else str(revision)


def _upgrade(database: Database, to: str) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    supported = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    with database.write() as connection:
        revision = current_revision(connection)
        if revision is not None and revision not in supported:
            if _oldest_supported(connection) in supported:
                log.info("the database has the newer schema revision %s, which this version supports", revision)
                return
            raise Error(
                "RuntimeUnavailable",
                f"the database has schema revision {revision}; this version supports revisions up to {REVISION}",
                target=database.place,
                hint="install the version of amphitrite that wrote it, or a newer one",
            )
        _prepare(connection, database.place)
        config.attributes["connection"] = connection
        command.upgrade(config, to)


def _oldest_supported(connection: Connection) -> str | None:
    """The oldest revision whose programs work with this schema. A program that knows its name is
    new enough."""
    if not inspect(connection).has_table("schema_support"):
        return None
    revision = connection.execute(text("SELECT oldest FROM schema_support")).scalar()
    return None if revision is None else str(revision)


def _prepare(connection: Connection, place: str) -> None:
    if connection.dialect.name != "postgresql":
        return
    encoding = connection.execute(text("SHOW server_encoding")).scalar()
    if encoding != "UTF8":
        message = f"the database has the encoding {encoding}; it must be UTF8"
        raise Error("Unsupported", message, target=place, hint="CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0")
    connection.execute(text("SET LOCAL statement_timeout = 0"))
