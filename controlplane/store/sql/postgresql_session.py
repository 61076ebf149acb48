"""A PostgreSQL session that is kept open: it reconnects whenever the connection is lost.

Decides the pauses between attempts, and how a silent connection is checked. Must not know what the
session is used for.
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

#: Pauses between attempts to connect, in seconds: doubled each time up to the last.
FIRST_PAUSE_S, LAST_PAUSE_S = 0.1, 2.0
#: How often a silent connection is checked, in seconds.
CHECK_S = 5.0


class Stop(Exception):
    """Raised by ``on_connect`` if the session is no longer wanted."""


class PersistentSession:
    """A session with callbacks, which run in its own thread except for the first ``on_connect`` of
    ``start``.

    ``connect``: opens a connection that commits each statement. ``on_connect``: called with each
    new connection. ``on_notify``: called with the payloads of the notifications that arrived
    together. ``on_stop``: called if ``on_connect`` raised Stop on a connection after the first.
    """

    def __init__(
        self,
        name: str,
        connect: Callable[[], psycopg.Connection[Any]],
        on_connect: Callable[[psycopg.Connection[Any]], None],
        on_notify: Callable[[set[str]], None],
        on_stop: Callable[[], None],
    ) -> None:
        self._connect, self._on_connect, self._on_notify, self._on_stop = connect, on_connect, on_notify, on_stop
        self._closed = threading.Event()
        self._wake_send, self._wake_receive = socket.socketpair()
        self._first: psycopg.Connection[Any] | None = None
        self._thread = threading.Thread(target=self._run, name=f"database-{name}", daemon=True)

    def start(self) -> None:
        """Connects now. Raises Stop, or OSError if the connection fails."""
        import psycopg

        try:
            self._first = self._open()
        except BaseException as exc:
            self._close_wake()
            if isinstance(exc, psycopg.Error):
                raise OSError(f"the database failed: {' '.join(str(exc).split())}") from exc
            raise
        self._thread.start()

    def start_later(self) -> None:
        """Connects in the session's thread, and retries until it succeeds."""
        self._thread.start()

    def close(self) -> None:
        """Ends the session and waits for its thread, at most 10 s."""
        self._closed.set()
        with suppress(OSError):  # The thread has already ended.
            self._wake_send.send(b".")
        if threading.current_thread() is not self._thread:
            self._thread.join(10)

    def _run(self) -> None:
        pause = FIRST_PAUSE_S
        while not self._closed.is_set():
            try:
                connection, self._first = self._first or self._open(), None
                with connection:
                    pause = FIRST_PAUSE_S
                    self._listen(connection)
            except Stop:
                self._on_stop()
                break
            except Exception as exc:
                if self._closed.is_set():
                    break
                log.warning("%s: %s; retrying in %.1f s", self._thread.name, " ".join(str(exc).split()), pause)
                self._closed.wait(pause)
                pause = min(2 * pause, LAST_PAUSE_S)
        if self._first is not None:  # It was closed before this thread started.
            self._first.close()
        self._close_wake()

    def _open(self) -> psycopg.Connection[Any]:
        connection = self._connect()
        try:
            self._on_connect(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _listen(self, connection: psycopg.Connection[Any]) -> None:
        """Runs until ``close``. Raises psycopg.Error if the connection is lost."""
        with selectors.DefaultSelector() as selector:
            selector.register(connection.fileno(), selectors.EVENT_READ)
            selector.register(self._wake_receive, selectors.EVENT_READ)
            while not self._closed.is_set():
                if not selector.select(CHECK_S):
                    connection.execute("SELECT 1")
                payloads = {note.payload for note in connection.notifies(timeout=0)}
                if payloads:
                    self._on_notify(payloads)

    def _close_wake(self) -> None:
        self._wake_send.close()
        self._wake_receive.close()
