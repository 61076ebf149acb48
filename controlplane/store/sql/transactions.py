"""Connections to the database and transactions.

Decides that a write transaction excludes all other writes from its first statement, that a read
sees one snapshot, and how the database's errors become ours. ``sqlite`` and ``postgresql`` hold the
differences. Must not know tables.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from sqlalchemy import Connection, Engine
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from amphitrite.schemas.errors import Error

#: The name of the lock of a control plane that does not share its database
#: (``Database.hold_named_lock``).
CONTROL_PLANE = "control plane"
_URLS = "use sqlite:////path/to/file or postgresql+psycopg://USER:PASSWORD@HOST/DATABASE"


class Backend(Protocol):
    """One kind of database.

    ``place``: the database in messages, without a password. ``hint``: what to check if it fails.
    ``queue_timeout_s``: seconds that a write waits for other writes of this process, -1 for no
    limit.
    """

    place: str
    hint: str
    queue_timeout_s: float
    readers: Engine
    writers: Engine

    def lock_writes(self, connection: Connection) -> None:
        """Waits until no other process writes, and prevents writes until this transaction has
        ended."""
        ...

    def notify_change(self, connection: Connection) -> None:
        """Notifies other processes when this transaction is committed, if it has changed
        anything."""
        ...

    def exclusive(self) -> AbstractContextManager[Connection | None]:
        """As ``Database.exclusive``, but not between threads. Yields the connection for writes
        inside, None for any."""
        ...

    def hold_named_lock(self, name: str, lost: Callable[[], None]) -> AbstractContextManager[None]: ...

    def other_connections(self) -> int: ...

    def listen(self, on_change: Callable[[], None]) -> Callable[[], None]: ...


class Database:
    """One database: an SQLite file, or a PostgreSQL database that several control planes may share.

    Thread-safe. Each transaction uses its own connection from a pool.

    If the database does not answer, a transaction raises Error RuntimeUnavailable. On PostgreSQL
    that takes a bounded time: seconds to connect, a minute for a statement. The next transaction
    reconnects, so it succeeds once the database is back, without a restart.

    Writers of this process queue on a lock in the process. SQLite polls, which is not fair and can
    time out, and on PostgreSQL each waiting writer would use a connection.
    """

    def __init__(self, url_or_path: str | Path | URL) -> None:
        """Raises Error Unsupported (another kind of database, or no driver) or BadArgument (not a
        URL)."""
        self.url = parse(url_or_path)
        self._backend = _backend(self.url)
        self._write_lock = threading.Lock()
        self._exclusive_lock = threading.RLock()
        self._held = _HeldConnection()

    @property
    def place(self) -> str:
        """The file, or ``postgresql://HOST/DATABASE``, for messages; never a password."""
        return self._backend.place

    @property
    def is_shared(self) -> bool:
        """Whether other processes may use it at the same time."""
        return self.url.get_backend_name() == "postgresql"

    def size(self) -> int:
        """Bytes of the database on its disk."""
        with self.read() as connection:
            if self.is_shared:
                return int(connection.exec_driver_sql("SELECT pg_database_size(current_database())").scalar_one())
        files = [Path(f"{self._backend.place}{suffix}") for suffix in ("", "-wal", "-shm")]
        return sum(file.stat().st_size for file in files if file.exists())

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A read-only transaction that sees one snapshot of the database."""
        with self._translate_errors(), self._backend.readers.begin() as connection:
            yield connection

    @contextmanager
    def write(self, *, quiet: bool = False) -> Iterator[Connection]:
        """A write transaction that no other write overlaps. At its end all of it is on disk, or
        none.

        Afterwards the ``listen`` callbacks of other processes are called, unless ``quiet``.
        """
        with self._translate_errors(), self._write_queue(), self._write_connection() as connection:
            self._backend.lock_writes(connection)
            yield connection
            if not quiet:
                self._backend.notify_change(connection)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """A block in which values that were read are still current when they are written.

        No other such block runs at the same time, in this process or another; other transactions
        do. Re-entrant in a thread. On PostgreSQL writes inside use the connection that holds the
        lock, so a lost lock also fails the write, with Error RuntimeUnavailable.
        """
        with self._exclusive_lock:
            if self._held.depth:
                yield
                return
            with self._translate_errors(), self._backend.exclusive() as connection:
                self._held.depth, self._held.connection = 1, connection
                try:
                    yield
                finally:
                    self._held.depth, self._held.connection = 0, None

    def hold_named_lock(self, name: str, lost: Callable[[], None] = lambda: None) -> AbstractContextManager[None]:
        """Holds the lock ``name`` on this database until the block or the process ends.

        A lost connection is reopened and the lock taken again. ``lost`` is called, in another
        thread, if another process got it first. Raises Error Conflict (another process holds it) or
        RuntimeUnavailable.
        """
        return self._backend.hold_named_lock(name, lost)

    def other_connections(self) -> int:
        """The number of connections that other processes of this program have; always 0 on SQLite.

        Raises Error RuntimeUnavailable.
        """
        with self._translate_errors():
            return self._backend.other_connections()

    def listen(self, on_change: Callable[[], None]) -> Callable[[], None]:
        """Calls ``on_change`` in another thread soon after another process has written.

        Several writes may cause one call. It is also called after each connection, because earlier
        changes are not known; if it raises, it is called again. Returns a function that ends it. On
        SQLite no other process writes, so it is never called.
        """
        return self._backend.listen(on_change)

    def close(self) -> None:
        self._backend.readers.dispose()

    @contextmanager
    def _write_connection(self) -> Iterator[Connection]:
        held = self._held.connection
        if held is not None:
            with held.begin():
                yield held
        else:
            with self._backend.writers.begin() as connection:
                yield connection

    @contextmanager
    def _write_queue(self) -> Iterator[None]:
        if not self._write_lock.acquire(timeout=self._backend.queue_timeout_s):
            raise self._failed("too many changes are queued")
        try:
            yield
        finally:
            self._write_lock.release()

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except DataError as exc:
            # Values that no row can hold: a NUL character, or text longer than its column.
            message = f"the database cannot store this value: {_line(exc.orig)}"
            raise Error("BadArgument", message, target=self.place) from exc
        except DBAPIError as exc:
            raise self._failed(_line(exc.orig)) from exc
        except PoolTimeout as exc:
            raise self._failed("all connections are in use") from exc

    def _failed(self, message: str) -> Error:
        text = f"the database failed: {message}"
        return Error("RuntimeUnavailable", text, target=self.place, hint=self._backend.hint)


class _HeldConnection(threading.local):
    """The state of a thread inside ``exclusive``."""

    def __init__(self) -> None:
        self.depth = 0
        self.connection: Connection | None = None


def parse(url_or_path: str | Path | URL) -> URL:
    """The URL of a database; a path means SQLite. Raises Error BadArgument or Unsupported."""
    if isinstance(url_or_path, URL):
        return url_or_path
    text = os.fspath(url_or_path)
    if "://" not in text:
        return URL.create("sqlite", database=text)
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as exc:
        # The text is not repeated: it may contain a password.
        raise Error("BadArgument", "not a database URL", target="database", hint=_URLS) from exc
    backend = url.get_backend_name()
    if backend == "sqlite" and url.database not in (None, "", ":memory:"):
        return url
    if backend == "postgresql" and url.drivername in ("postgresql", "postgresql+psycopg"):
        return url.set(drivername="postgresql+psycopg")
    shown = f"{url.drivername}://" + (url.host or "")
    raise Error(
        "Unsupported", f"{shown} is neither an SQLite file nor a PostgreSQL database", target="database", hint=_URLS
    )


def _backend(url: URL) -> Backend:
    if url.get_backend_name() == "sqlite":
        from amphitrite.controlplane.store.sql.sqlite import Sqlite

        return Sqlite(url)
    from amphitrite.controlplane.store.sql.postgresql import Postgresql

    return Postgresql(url)


def _line(error: BaseException | None) -> str:
    """A driver's message on one line."""
    return " ".join(str(error).split())
