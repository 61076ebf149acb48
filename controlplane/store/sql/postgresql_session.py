"""A connection of its own to PostgreSQL that is kept: made again whenever it is lost.

Decides how often that is tried and how a connection that is silent is known to live. Must not know what it is for.
"""

from __future__ import annotations

import logging
import selectors
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg

log = logging.getLogger(__name__)

#: Pauses between attempts to connect (seconds), doubled each time up to the last.
FIRST_PAUSE_S, LAST_PAUSE_S = 0.1, 2.0
#: How often a silent connection is asked whether it lives.
CHECK_S = 5.0


class Stop(Exception):
    """Raised by ``established``: the session is not wanted any more."""


class KeptSession:
    """``connect`` makes a connection that commits each statement. ``established`` is called with each that is made,
    ``notified`` with the payloads that have come in together, ``stopped`` when ``established`` raised Stop on a later
    connection than the first. All but the first call of ``start`` happen in the session's own thread."""

    def __init__(
        self,
        name: str,
        connect: Callable[[], psycopg.Connection[Any]],
        established: Callable[[psycopg.Connection[Any]], None],
        notified: Callable[[set[str]], None],
        stopped: Callable[[], None],
    ) -> None:
        self._connect, self._established, self._notified, self._stopped = connect, established, notified, stopped
        self._closed = threading.Event()
        self._bell, self._rung = socket.socketpair()
        self._first: psycopg.Connection[Any] | None = None
        self._thread = threading.Thread(target=self._run, name=f"database-{name}", daemon=True)

    def start(self) -> None:
        """Connect now. Raises Stop, OSError when it cannot be done."""
        import psycopg

        try:
            self._first = self._made()
        except BaseException as exc:
            self._close_bell()
            if isinstance(exc, psycopg.Error):
                raise OSError(f"the database failed: {' '.join(str(exc).split())}") from exc
            raise
        self._thread.start()

    def start_later(self) -> None:
        """Connect in the session's thread, now or when it can be done."""
        self._thread.start()

    def close(self) -> None:
        """End it, and wait until it has ended."""
        self._closed.set()
        with suppress(OSError):  # it has ended by itself
            self._bell.send(b".")
        if threading.current_thread() is not self._thread:
            self._thread.join(10)

    def _run(self) -> None:
        pause = FIRST_PAUSE_S
        while not self._closed.is_set():
            try:
                connection, self._first = self._first or self._made(), None
                with connection:
                    pause = FIRST_PAUSE_S
                    self._follow(connection)
            except Stop:
                self._stopped()
                break
            except Exception as exc:
                if self._closed.is_set():
                    break
                log.warning("%s: %s; again in %.1f s", self._thread.name, " ".join(str(exc).split()), pause)
                self._closed.wait(pause)
                pause = min(2 * pause, LAST_PAUSE_S)
        if self._first is not None:  # It was closed before this thread had begun.
            self._first.close()
        self._close_bell()

    def _made(self) -> psycopg.Connection[Any]:
        connection = self._connect()
        try:
            self._established(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _follow(self, connection: psycopg.Connection[Any]) -> None:
        """Until ``close``; raises psycopg.Error when the connection is lost."""
        with selectors.DefaultSelector() as selector:
            selector.register(connection.fileno(), selectors.EVENT_READ)
            selector.register(self._rung, selectors.EVENT_READ)
            while not self._closed.is_set():
                if not selector.select(CHECK_S):
                    connection.execute("SELECT 1")
                payloads = {note.payload for note in connection.notifies(timeout=0)}
                if payloads:
                    self._notified(payloads)

    def _close_bell(self) -> None:
        self._bell.close()
        self._rung.close()
