"""How long the HTTPS server waits for a client that stalls, and for how many.

Decides when a connection is given up: a request's head that does not become complete, a body that stops coming, a
connection on which nothing is said, an answer that nobody reads. A client that is waiting for us is never given up.
Where there are too many connections, the one that has been waited for longest makes room. Rests on parts of
uvicorn that are not documented (decision 0007). Must not know requests.
"""

from __future__ import annotations

import asyncio
from typing import Any

from amphitrite.controlplane.process.http_protocol import BodyProtocol


class PatientProtocol(BodyProtocol):
    """Uvicorn's protocol, which itself waits for ever but between two requests."""

    #: Seconds in which a request's head must be complete, however its bytes trickle.
    HEAD_S = 30.0
    #: Seconds without a byte, either way.
    IDLE_S = 60.0
    #: Connections at one time: well below the 1,024 files that a process may have open by default.
    CONNECTIONS_MAX = 512

    _heard = 0.0
    _head_began: float | None = None
    _unsent = 0
    _look: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._heard = self.loop.time()
        if len(self.connections) > self.CONNECTIONS_MAX:
            self._make_room()
        self._look_later()

    def buffer_updated(self, nbytes: int) -> None:
        self._heard = self.loop.time()
        # Who was refused early may go on to the end of his body: only then do most clients listen.
        if self._head_began is None and not self._answering() and not self._left:
            self._head_began = self._heard
        super().buffer_updated(nbytes)
        if self._answering():
            self._head_began = None

    def connection_lost(self, exc: Exception | None) -> None:
        if self._look is not None:
            self._look.cancel()
        super().connection_lost(exc)

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _waiting(self) -> bool:
        """Whether the client is to do something: send a request or more of it, or read our answer."""
        if not self._answering():
            return True
        unsent = self.transport.get_write_buffer_size()
        if unsent:
            if unsent != self._unsent:
                self._unsent, self._heard = unsent, self.loop.time()
            return True
        return bool(self.cycle.more_body and not self.flow.read_paused)

    def _look_later(self) -> None:
        self._look = self.loop.call_later(min(self.HEAD_S, self.IDLE_S) / 4, self._look_now)

    def _look_now(self) -> None:
        now = self.loop.time()
        late = self._head_began is not None and now - self._head_began > self.HEAD_S
        if late or (self._waiting() and now - self._heard > self._idle_s()):
            self.transport.abort()
        else:
            self._look_later()

    def _idle_s(self) -> float:
        """Between two requests uvicorn's own timeout counts."""
        between = self.cycle is not None and self.cycle.response_complete and self._head_began is None
        return max(self.IDLE_S, float(self.timeout_keep_alive)) if between else self.IDLE_S

    def _make_room(self) -> None:
        # All connections of the server are of this class; uvicorn's own type says of any of its.
        known: list[Any] = [one for one in self.connections if one is not self]
        others = [one for one in known if one._waiting()]
        (min(others, key=lambda one: one._heard) if others else self).transport.abort()
