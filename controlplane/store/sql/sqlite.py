"""A database in a file of this machine's.

Decides SQLite's settings, and that its files are their owner's alone. Must not know tables.
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

from amphitrite.controlplane.store.sql.json_text import serialised
from amphitrite.schemas.errors import Error

#: How long a write waits for another process (a backup, a shell) that holds SQLite's write lock.
BUSY_TIMEOUT_S = 30.0

#: synchronous=FULL: a commit is on the disk before it is answered, as "nothing is lost" asks; WAL: readers never wait.
_PRAGMAS = (f"busy_timeout={int(BUSY_TIMEOUT_S * 1000)}", "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON")


class Sqlite:
    """``transactions.Kind``, whose docstrings hold."""

    advice = "look for a full disk, a damaged file or another program that holds it"
    queue_s = -1.0

    def __init__(self, url: URL) -> None:
        self.path = Path(url.database or "")
        self.place = str(self.path)
        _create_private(self.path)
        self.readers = create_engine(
            url, pool_size=8, max_overflow=120, hide_parameters=True, json_serializer=serialised
        )
        self.writers: Engine = self.readers.execution_options(amphitrite_write=True)
        event.listen(self.readers, "connect", _configure)
        event.listen(self.readers, "begin", _begin)

    def shut_out(self, connection: Connection) -> None:
        """BEGIN IMMEDIATE has done so."""

    def announce(self, connection: Connection) -> None:
        """There is nobody to tell."""

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        yield

    @contextmanager
    def hold_alone(self, name: str, lost: Callable[[], None]) -> Iterator[None]:
        """By the kernel's lock on a file beside the database's; never on that itself, whose own locks closing it would
        drop. The kernel frees it when the process ends, however it ends, so it is never ``lost``."""
        file = self.path.with_name(f"{self.path.name}-{name.replace(' ', '-')}")
        try:
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as exc:
            raise Error("RuntimeUnavailable", f"cannot make {file}: {exc.strerror}", target=self.place) from exc
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as exc:
                raise Error("Conflict", f"another {name} uses the database {self.place}", target=self.place) from exc
            yield
        finally:
            os.close(descriptor)

    def others(self) -> int:
        return 0

    def listen(self, on_change: Callable[[], None]) -> Callable[[], None]:
        return lambda: None


def _create_private(path: Path) -> None:
    """Make the file ourselves, as SQLite would give it the mode of the umask; its companions inherit the mode."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        path.chmod(0o600)
    except OSError as exc:
        raise Error("RuntimeUnavailable", f"cannot open the database: {exc.strerror}", target=str(path)) from exc


def _configure(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    connection.isolation_level = None  # The driver's own BEGIN would come late and without a mode.
    cursor = connection.cursor()
    for pragma in _PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin(connection: Connection) -> None:
    """IMMEDIATE takes the write lock now: a read that turned into a write later could only be refused."""
    write = connection.get_execution_options().get("amphitrite_write")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
