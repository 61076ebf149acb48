"""How the body of a request comes from the socket to the application, with as little work for each byte as can be.

Decides where its bytes are put: the body of whoever states a Content-Length is decrypted into pieces that the
application is given as they are, and h11 sees the head alone. Chunked bodies are h11's. Rests on parts of uvicorn that
are not documented (decision 0007). Must not know requests, nor time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

#: What a request's head may have.
HEAD_MAX = 64 * 1024
#: Room for a head, and for a body that only h11 can read.
_HEAD_BYTES = 64 * 1024
#: Small enough to stay in a core's cache from decrypting to copying.
_PIECE_BYTES = 256 * 1024
#: Pieces of which the application is told at once, and at which nothing more is read until it has taken some.
_TOLD, _WAITING_MAX = 4, 8


class BodyProtocol(H11Protocol, asyncio.BufferedProtocol):
    """Uvicorn's protocol, which copies each byte five times on its way through h11, and stops after each 64 KiB."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._inner, self.app = self.app, self._run
        self._head: memoryview | None = None
        self._piece = bytearray()
        self._filled = 0
        #: Complete ones that the application has not taken yet.
        self._pieces: deque[bytes] = deque()
        #: Bytes of the body that are still to come and that h11 does not see.
        self._left = 0
        #: h11 knows nothing of the end of a body that it has not seen: the next request gets a parser of its own.
        self._unseen = False
        #: What came behind a body before the answer was sent.
        self._behind = b""

    async def _run(self, scope: Any, receive: Any, send: Any) -> None:
        """The application, which takes a body's pieces before it hears that there are no more."""
        cycle = self.cycle

        async def received() -> Any:
            message = await receive()
            if message["type"] == "http.request" and self._pieces:
                # What came with the head goes first.
                message["body"] = message["body"] or self._pieces.popleft()
                if self._pieces:
                    message["more_body"] = True
                    cycle.message_event.set()
            return message

        await self._inner(scope, received, send)

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._left:
            return memoryview(self._piece)[self._filled : self._filled + self._left]
        if self._head is None:
            self._head = memoryview(bytearray(_HEAD_BYTES))
        return self._head

    def buffer_updated(self, nbytes: int) -> None:
        if self._left:
            self._unset_keepalive_if_required()
            self._filled += nbytes
            self._left -= nbytes
            if self._filled == len(self._piece) or not self._left:
                self._hand_over()
        else:
            assert self._head is not None  # It was filled just now.
            self.data_received(bytes(self._head[:nbytes]))

    def data_received(self, data: bytes) -> None:
        if self._unseen:
            self._behind += data
            self.flow.pause_reading()
        else:
            super().data_received(data)

    def handle_events(self) -> None:
        before = self.cycle
        super().handle_events()
        if self.cycle is before or not self.cycle.more_body:
            return
        fields = dict(self.headers)
        if b"transfer-encoding" not in fields:
            # The application has not run yet: what came of the body with the head is still there.
            self._left = int(fields[b"content-length"]) - len(self.cycle.body)
            self._unseen = True
            self._pieces.clear()
            self._piece = bytearray(min(_PIECE_BYTES, self._left))

    def on_response_complete(self) -> None:
        self._end_of_both()
        super().on_response_complete()
        behind, self._behind = self._behind, b""
        if behind and not self.transport.is_closing():
            self.data_received(behind)

    def _hand_over(self) -> None:
        cycle = self.cycle
        if not cycle.response_complete:
            with memoryview(self._piece)[: self._filled] as view:
                self._pieces.append(bytes(view))
            cycle.more_body = self._left > 0
            if len(self._pieces) >= _WAITING_MAX:
                self.flow.pause_reading()  # The application's next question lets it go on.
            if len(self._pieces) >= _TOLD or not self._left:
                cycle.message_event.set()
        self._filled = 0
        self._end_of_both()

    def _end_of_both(self) -> None:
        """When the body was read to its end and the answer is sent, what comes next is a request."""
        if self._unseen and not self._left:
            self._piece = bytearray()
            if self.cycle.response_complete:
                self._unseen = False
                self._pieces.clear()
                self.conn = h11.Connection(h11.SERVER, HEAD_MAX)
