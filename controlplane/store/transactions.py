"""Connections to the database and what one transaction is.

Decides SQLite's settings, that a write holds the write lock from its first statement on, and how a database's own
errors become ours. Must not know tables.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry

from amphitrite.schemas.errors import Error

#: How long a write waits for another process (a backup, a shell) that holds SQLite's write lock.
BUSY_TIMEOUT_S = 30.0

#: synchronous=FULL: a commit is on the disk before it is answered, as "nothing is lost" asks; WAL: readers never wait.
_PRAGMAS = (f"busy_timeout={int(BUSY_TIMEOUT_S * 1000)}", "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON")


class Database:
    """One database. Thread-safe; each transaction has a connection of its own from a pool.

    Writers of this process queue on a lock instead of SQLite's own polling, which is not fair and can time out.
    """

    def __init__(self, url_or_path: str | Path) -> None:
        """Raises Error Unsupported (not SQLite), BadArgument (not a URL)."""
        url = _url(url_or_path)
        self.path = Path(url.database or "")
        self._write_lock = threading.Lock()
        _create_private(self.path)
        self.engine: Engine = create_engine(url, pool_size=8, max_overflow=120)
        event.listen(self.engine, "connect", _configure)
        event.listen(self.engine, "begin", _begin)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that sees one state of the whole database, however long it takes."""
        with _translated(self.path), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that nobody else writes beside: all of it is on the disk at the end, or none of it."""
        writing = self.engine.execution_options(amphitrite_write=True)
        with self._write_lock, _translated(self.path), writing.begin() as connection:
            yield connection

    def close(self) -> None:
        self.engine.dispose()


def _url(url_or_path: str | Path) -> URL:
    text = os.fspath(url_or_path)
    if "://" not in text:
        return URL.create("sqlite", database=text)
    try:
        url = make_url(text)
    except ArgumentError as exc:
        raise Error("BadArgument", f"not a database URL: {text}", hint="use sqlite:////path/to/file") from exc
    if url.get_backend_name() != "sqlite" or url.database in (None, "", ":memory:"):
        shown = url.render_as_string(hide_password=True)
        raise Error("Unsupported", f"not an SQLite file: {shown}", hint="use sqlite:////path/to/file")
    return url


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


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except DBAPIError as exc:
        raise Error(
            "RuntimeUnavailable",
            f"the database failed: {exc.orig}",
            target=str(path),
            hint="look for a full disk, a damaged file or another program that holds it",
        ) from exc
