"""A database in a file on this machine.

Decides SQLite's settings, and that only the owner can read its files. Must not know tables.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry

from amphitrite.controlplane.store.sql.json_text import json_serializer
from amphitrite.schemas.errors import Error

#: Seconds that a write waits for another process (a backup, a shell) that holds SQLite's write
#: lock.
BUSY_TIMEOUT_S = 30.0

#: synchronous=FULL: a commit is on disk before it is answered, so no accepted change is lost.
#: journal_mode=WAL: readers never wait.
_PRAGMAS = (f"busy_timeout={int(BUSY_TIMEOUT_S * 1000)}", "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON")


class Sqlite:
    """Implements ``transactions.Backend``."""

    hint = "check for a full disk, a damaged file or another program that locks the file"
    queue_timeout_s = -1.0

    def __init__(self, url: URL) -> None:
        self.path = Path(url.database or "")
        self.place = str(self.path)
        _create_private(self.path)
        self.readers = create_engine(
            url, pool_size=8, max_overflow=120, hide_parameters=True, json_serializer=json_serializer
        )
        self.writers: Engine = self.readers.execution_options(amphitrite_write=True)
        event.listen(self.readers, "connect", _configure)
        event.listen(self.readers, "begin", _begin)

    def lock_writes(self, connection: Connection) -> None:
        """BEGIN IMMEDIATE already holds the write lock."""

    def notify_change(self, connection: Connection) -> None:
        """No other process uses the database."""

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        yield

    @contextmanager
    def hold_named_lock(self, name: str, lost: Callable[[], None]) -> Iterator[None]:
        """Holds flock(2) on a file beside the database.

        It never locks the database file itself, because closing that would drop SQLite's own locks.
        The kernel releases the lock when the process ends, so ``lost`` is never called.
        """
        file = self.path.with_name(f"{self.path.name}-{name.replace(' ', '-')}")
        try:
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as exc:
            raise Error("RuntimeUnavailable", f"cannot create {file}: {exc.strerror}", target=self.place) from exc
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as exc:
                raise Error("Conflict", f"another {name} uses the database {self.place}", target=self.place) from exc
            yield
        finally:
            os.close(descriptor)

    def other_connections(self) -> int:
        return 0

    def listen(self, on_change: Callable[[], None]) -> Callable[[], None]:
        return lambda: None


def _create_private(path: Path) -> None:
    """Creates the file with mode 0600: SQLite would use the umask, and its companion files inherit
    the mode."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        path.chmod(0o600)
    except OSError as exc:
        raise Error("RuntimeUnavailable", f"cannot open the database: {exc.strerror}", target=str(path)) from exc


def _configure(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    connection.isolation_level = None  # The driver's own BEGIN comes late and without IMMEDIATE.
    cursor = connection.cursor()
    for pragma in _PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin(connection: Connection) -> None:
    """IMMEDIATE takes the write lock now: a read transaction that writes later could only be
    refused."""
    write = connection.get_execution_options().get("amphitrite_write")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
