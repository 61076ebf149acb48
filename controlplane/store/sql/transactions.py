"""Connections to the database and what one transaction is.

Decides that a write has the database to itself from its first statement on, that a read sees one state, and how a
database's own errors become ours. What differs between SQLite and PostgreSQL is in ``sqlite`` and ``postgresql``. Must
not know tables.
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

#: What a control plane that is alone on its database holds (``Database.hold_alone``).
CONTROL_PLANE = "control plane"
_URLS = "use sqlite:////path/to/file or postgresql+psycopg://USER:PASSWORD@HOST/DATABASE"


class Kind(Protocol):
    """What a transaction takes on one kind of database. ``place``: the database in messages, without a password.
    ``advice``: what to look for when it fails. ``queue_s``: how long a write waits for others of this process, -1 for
    ever."""

    place: str
    advice: str
    queue_s: float
    readers: Engine
    writers: Engine

    def shut_out(self, connection: Connection) -> None:
        """Wait until no other process writes, and let none until this transaction has ended."""
        ...

    def announce(self, connection: Connection) -> None:
        """Tell other processes, when this transaction is committed, if it has changed anything."""
        ...

    def exclusive(self) -> AbstractContextManager[Connection | None]:
        """See ``Database.exclusive``, less threads; a connection on which to write meanwhile, None for any."""
        ...

    def hold_alone(self, name: str, lost: Callable[[], None]) -> AbstractContextManager[None]: ...

    def others(self) -> int: ...

    def listen(self, on_change: Callable[[], None]) -> Callable[[], None]: ...


class Database:
    """One database: a file of SQLite's, or one of PostgreSQL that several control planes may share. Thread-safe; each
    transaction has a connection of its own from a pool.

    A database that does not answer makes a transaction raise Error RuntimeUnavailable, after a bounded time on
    PostgreSQL (seconds to connect, a minute for a statement). The next transaction connects anew: whoever tries again
    once it is back succeeds, without a restart.

    Writers of this process queue on a lock here instead of in the database: SQLite polls, which is not fair and can
    time out, and on PostgreSQL each would hold a connection while it waits.
    """

    def __init__(self, url_or_path: str | Path | URL) -> None:
        """Raises Error Unsupported (another kind of database; the driver is not installed), BadArgument (not a URL)."""
        self.url = parse(url_or_path)
        self._kind = _kind(self.url)
        self._write_lock = threading.Lock()
        self._exclusive_lock = threading.RLock()
        self._held = _Held()

    @property
    def place(self) -> str:
        """For messages: the file, or ``postgresql://HOST/DATABASE``; never a password."""
        return self._kind.place

    @property
    def is_shared(self) -> bool:
        """Whether other processes may work with it at the same time."""
        return self.url.get_backend_name() == "postgresql"

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that sees one state of the whole database, however long it takes, and changes nothing."""
        with self._translated(), self._kind.readers.begin() as connection:
            yield connection

    @contextmanager
    def write(self, *, quiet: bool = False) -> Iterator[Connection]:
        """A transaction that nobody else writes beside: all of it is on the disk at the end, or none of it. Then
        whoever ``listen``s in other processes is called, unless it is ``quiet``."""
        with self._translated(), self._queued(), self._writing() as connection:
            self._kind.shut_out(connection)
            yield connection
            if not quiet:
                self._kind.announce(connection)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """What is read here is still so when it is written here: no other block like this runs meanwhile, in this
        process or another. Re-entrant in a thread. Other transactions go on beside it.

        On PostgreSQL writes inside use the connection that holds the lock: a lock that is lost takes the write with
        it, which raises Error RuntimeUnavailable.
        """
        with self._exclusive_lock:
            if self._held.depth:
                yield
                return
            with self._translated(), self._kind.exclusive() as connection:
                self._held.depth, self._held.connection = 1, connection
                try:
                    yield
                finally:
                    self._held.depth, self._held.connection = 0, None

    def hold_alone(self, name: str, lost: Callable[[], None] = lambda: None) -> AbstractContextManager[None]:
        """Be the only holder of ``name`` on this database, until the block or the process ends.

        A connection that is lost is made again and the name taken again; ``lost`` is called, in another thread, when
        somebody else was faster. Raises Error Conflict when another process holds it, RuntimeUnavailable.
        """
        return self._kind.hold_alone(name, lost)

    def others(self) -> int:
        """How many connections other processes of ours have to it now; 0 for SQLite, where nobody counts. Raises Error
        RuntimeUnavailable."""
        with self._translated():
            return self._kind.others()

    def listen(self, on_change: Callable[[], None]) -> Callable[[], None]:
        """Call ``on_change`` in another thread soon after any other process has written; several writes may be one
        call. It is also called after each connection, first or again, as what happened before is not known; when it
        raises, it is called again. Returns what ends it. On SQLite nobody else writes, and it is never called.
        """
        return self._kind.listen(on_change)

    def close(self) -> None:
        self._kind.readers.dispose()

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        held = self._held.connection
        if held is not None:
            with held.begin():
                yield held
        else:
            with self._kind.writers.begin() as connection:
                yield connection

    @contextmanager
    def _queued(self) -> Iterator[None]:
        if not self._write_lock.acquire(timeout=self._kind.queue_s):
            raise self._failed("too many changes wait for it")
        try:
            yield
        finally:
            self._write_lock.release()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except DataError as exc:
            # What no row can hold: a NUL character, a text that is longer than its column.
            message = f"the database cannot hold this: {_line(exc.orig)}"
            raise Error("BadArgument", message, target=self.place) from exc
        except DBAPIError as exc:
            raise self._failed(_line(exc.orig)) from exc
        except PoolTimeout as exc:
            raise self._failed("all connections to it are in use") from exc

    def _failed(self, message: str) -> Error:
        text = f"the database failed: {message}"
        return Error("RuntimeUnavailable", text, target=self.place, hint=self._kind.advice)


class _Held(threading.local):
    """Of a thread that is inside ``exclusive``."""

    def __init__(self) -> None:
        self.depth = 0
        self.connection: Connection | None = None


def parse(url_or_path: str | Path | URL) -> URL:
    """The URL of a database; a path is SQLite's. Raises Error BadArgument, Unsupported."""
    if isinstance(url_or_path, URL):
        return url_or_path
    text = os.fspath(url_or_path)
    if "://" not in text:
        return URL.create("sqlite", database=text)
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as exc:
        # The text is not repeated: what cannot be read as a URL may well hold a password.
        raise Error("BadArgument", "not a database URL", target="database", hint=_URLS) from exc
    backend = url.get_backend_name()
    if backend == "sqlite" and url.database not in (None, "", ":memory:"):
        return url
    if backend == "postgresql" and url.drivername in ("postgresql", "postgresql+psycopg"):
        return url.set(drivername="postgresql+psycopg")
    shown = f"{url.drivername}://" + (url.host or "")
    raise Error("Unsupported", f"not an SQLite file or a PostgreSQL database: {shown}", target="database", hint=_URLS)


def _kind(url: URL) -> Kind:
    if url.get_backend_name() == "sqlite":
        from amphitrite.controlplane.store.sql.sqlite import Sqlite

        return Sqlite(url)
    from amphitrite.controlplane.store.sql.postgresql import Postgresql

    return Postgresql(url)


def _line(error: BaseException | None) -> str:
    """A driver's message, which may have several lines, as one."""
    return " ".join(str(error).split())
