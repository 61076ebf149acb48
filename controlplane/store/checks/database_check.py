"""The check of the database.

Decides what a good database is: its own check finds nothing, every row can be read, and what rows
refer to exists. Must not know the content of models, or what rows mean to others.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from sqlalchemy import Connection, select, text

from amphitrite.controlplane.store.checks.findings import RESTORE, Report
from amphitrite.controlplane.store.sql import write_ahead_log
from amphitrite.controlplane.store.sql.tables import metadata, routing_tables, signing_keys
from amphitrite.controlplane.store.sql.transactions import Database
from amphitrite.controlplane.store.state import row_transfer
from amphitrite.dataplane.table.json_codec import from_json
from amphitrite.schemas.errors import Error

KIND = "database"
#: SQLite reports at most so many problems.
_PROBLEMS_MAX = 100
_TABLE_HINT = "start the control plane, which publishes the table again; if it does not start, restore a backup"


def check_file(path: Path, report: Report, *, in_use: bool) -> None:
    """Checks an SQLite file and, unless it is in use, its journal, before anything else opens
    it."""
    report.count(KIND, 1, path.stat().st_size)
    problems = [] if in_use else write_ahead_log.problems(path.with_name(f"{path.name}-wal"))
    for problem in dict.fromkeys((*problems, *_own_problems(path))):
        report.add(KIND, str(path), problem, RESTORE)


def require_sound(database: Database) -> None:
    """Raises Error DamagedContent for damage that SQLite finds in its file."""
    problems = [] if database.is_shared else list(_own_problems(Path(database.place)))
    if problems:
        message = f"the database {database.place} is damaged: {'; '.join(problems[:3])}"
        hint = "`ml server check` has all of it; restore an older backup"
        raise Error("DamagedContent", message, target=database.place, hint=hint)


def _own_problems(path: Path) -> Iterator[str]:
    """What SQLite finds in a file, which others may be using."""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=rw", uri=True, timeout=30)) as connection:
            for row in connection.execute(f"PRAGMA integrity_check({_PROBLEMS_MAX})"):
                if row[0] != "ok":
                    yield str(row[0])
            for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
                yield f"row {row} of {table} refers to a row of {parent} that does not exist"
    except sqlite3.Error as exc:
        yield str(exc)


def check_rows(database: Database, report: Report) -> None:
    """Reads every row."""
    if database.is_shared:
        report.count(KIND, 1, database.size())
        with database.read() as connection:
            if connection.execute(text("SHOW data_checksums")).scalar() != "on":
                report.notes.append(
                    "PostgreSQL runs without data checksums, so it does not notice a byte that changes on its disk "
                    "(initdb --data-checksums, or pg_checksums)"
                )
    for table in metadata.sorted_tables:
        try:
            with database.read() as connection:
                number = sum(1 for _ in row_transfer.rows(connection, table))
        except Error as error:
            report.add(KIND, f"table {table.name}", error.message, RESTORE)
        except (ValueError, LookupError) as exc:
            report.add(KIND, f"table {table.name}", f"a row cannot be read: {exc}", RESTORE)
        else:
            report.count("rows", number)
    try:
        with database.read() as connection:
            _check_values(connection, report)
    except (Error, ValueError, LookupError):
        pass  # These rows were found above.


def _check_values(connection: Connection, report: Report) -> None:
    """Values whose form is known."""
    for row in connection.execute(select(routing_tables)):
        try:
            if from_json(row.content).version != row.version:
                raise ValueError("it has another version")
        except (KeyError, TypeError, ValueError, AttributeError) as exc:
            report.add(KIND, "table routing_tables", f"it is not a routing table: {exc!r}", _TABLE_HINT)
    for row in connection.execute(select(signing_keys)):
        try:
            load_pem_private_key(row.private_key.encode(), password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            report.add(KIND, "table signing_keys", f"the key {row.id} is not a private key", RESTORE)
