"""Limits on time and number of connections of the HTTPS server.

Decides when a connection is aborted: its head is not complete in time, its body stalls or goes on
after the answer, it is idle, or the client does not read the answer. A client that waits for an
answer is never aborted. Above the limit of connections, the one that has been idle longest is
aborted. It sees a connection only after its TLS handshake (``handshakes``). Uses undocumented parts
of uvicorn (decision 0007). Must not know requests.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11

from amphitrite.controlplane.process.handshakes import Handshakes
from amphitrite.controlplane.process.http_protocol import BodyProtocol


class ConnectionLimitsProtocol(BodyProtocol):
    """Uvicorn's protocol with limits. Uvicorn itself limits only the time between two requests."""

    #: Seconds in which the head of a request must be complete.
    HEAD_S = 30.0
    #: Seconds without a byte in either direction.
    IDLE_S = 60.0
    #: The number of connections after their TLS handshake. ``handshakes`` limits those before.
    CONNECTIONS_MAX = 512
    #: The rest of a body that is read after its answer, such as 401: bytes, and seconds. Most
    #: clients read the answer only when they have sent all. Azure's send at most 64 MiB at a time.
    REST_BYTES, REST_S = 64 * 1024 * 1024, 30.0
    #: The server's connections before the handshake; None where it has no TLS.
    handshakes: Handshakes | None = None

    _last_activity = 0.0
    _head_started: float | None = None
    _unsent = 0
    _rest_bytes, _rest_until = 0, 0.0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.handshakes is not None:
            self.handshakes.complete(transport.get_extra_info("socket").fileno())
        self._last_activity = self.loop.time()
        if len(self.connections) > self.CONNECTIONS_MAX:
            self._abort_idlest()
        self._schedule_check()

    def buffer_updated(self, nbytes: int) -> None:
        self._last_activity = self.loop.time()
        # A client that was refused early may send the rest of its body. Most clients read only
        # then.
        if self._head_started is None and not self._answering() and not self._remaining:
            self._head_started = self._last_activity
        super().buffer_updated(nbytes)
        if self._answering():
            self._head_started = None
        self._limit_rest(nbytes)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _limit_rest(self, nbytes: int) -> None:
        """Ends the connection if it goes on with a body that was answered long ago."""
        if self.cycle is None or self._answering() or self.conn.their_state is not h11.SEND_BODY:
            self._rest_bytes = 0
            return
        if not self._rest_bytes:
            self._rest_until = self._last_activity + self.REST_S
        self._rest_bytes += nbytes
        if self._rest_bytes > self.REST_BYTES or self._last_activity > self._rest_until:
            self.transport.abort()

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _waits_for_client(self) -> bool:
        """Whether the server waits for the client: for a request, for its rest, or to read the
        answer."""
        if not self._answering():
            return True
        unsent = self.transport.get_write_buffer_size()
        if unsent:
            if unsent != self._unsent:
                self._unsent, self._last_activity = unsent, self.loop.time()
            return True
        return bool(self.cycle.more_body and not self.flow.read_paused)

    def _schedule_check(self) -> None:
        self._timer = self.loop.call_later(min(self.HEAD_S, self.IDLE_S) / 4, self._check)

    def _check(self) -> None:
        now = self.loop.time()
        late = self._head_started is not None and now - self._head_started > self.HEAD_S
        if late or (self._waits_for_client() and now - self._last_activity > self._idle_s()):
            self.transport.abort()
        else:
            self._schedule_check()

    def _idle_s(self) -> float:
        """The idle limit in seconds. Between two requests it is at least uvicorn's keep-alive
        timeout."""
        between = self.cycle is not None and self.cycle.response_complete and self._head_started is None
        return max(self.IDLE_S, float(self.timeout_keep_alive)) if between else self.IDLE_S

    def _abort_idlest(self) -> None:
        # All connections of the server have this class. Uvicorn declares a wider type.
        known: list[Any] = [one for one in self.connections if one is not self]
        others = [one for one in known if one._waits_for_client()]
        (min(others, key=lambda one: one._last_activity) if others else self).transport.abort()
