"""The schema's history, and bringing a database to its newest revision at start.

Decides when a database is too new for this program. Must not know what the tables are for.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from amphitrite.controlplane.store.tables import REVISION
from amphitrite.controlplane.store.transactions import Database
from amphitrite.schemas.errors import Error


def migrate(database: Database) -> None:
    """Bring the schema to ``REVISION``, in one transaction.

    Raises Error RuntimeUnavailable when a newer version of the program has been here.
    """
    with database.read() as connection:
        if found_revision(connection) == REVISION:
            return  # The usual start: Alembic, slow to import, is not needed.
    _upgrade(database)


def found_revision(connection: Connection) -> str | None:
    """The schema's revision, None for an empty database."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)


def _upgrade(database: Database) -> None:
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
            raise Error(
                "RuntimeUnavailable",
                f"the database has schema revision {found}; this version of amphitrite knows up to {REVISION}",
                target=str(database.path),
                hint="install the newer version of amphitrite that wrote it",
            )
        config.attributes["connection"] = connection
        command.upgrade(config, REVISION)
