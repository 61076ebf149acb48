"""Reception of request bodies, with few copies of each byte.

Decides where the bytes go. A body with a Content-Length is decrypted into large buffers, which the
application gets unchanged. h11 parses only the head, and chunked bodies. Uses undocumented parts of
uvicorn (decision 0007). Must not know requests or time limits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

#: The longest head of a request, in bytes.
HEAD_MAX = 64 * 1024
#: The size of the buffer for heads and chunked bodies.
_HEAD_BYTES = 64 * 1024
#: The size of a buffer for a body. It fits in a core's cache, from decryption to copy.
_BUFFER_BYTES = 256 * 1024
#: The number of buffers at which the application is woken, and at which reading pauses.
_WAKE_AT, _PAUSE_AT = 4, 8


class BodyProtocol(H11Protocol, asyncio.BufferedProtocol):
    """Uvicorn's protocol without the way through h11, which copies each byte five times and stops
    after each 64 KiB."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._application, self.app = self.app, self._run
        self._head_buffer: memoryview | None = None
        self._body_buffer = bytearray()
        self._filled = 0
        #: Full buffers that the application has not read yet.
        self._full_buffers: deque[bytes] = deque()
        #: Bytes of the body that have not arrived yet and that h11 does not see.
        self._remaining = 0
        #: h11 does not see the end of this body, so the next request gets a new parser.
        self._bypasses_h11 = False
        #: Bytes after the body that arrived before the answer was sent (pipelining).
        self._pipelined = b""

    async def _run(self, scope: Any, receive: Any, send: Any) -> None:
        """Runs the application, and gives it all buffers before the end of the body."""
        cycle = self.cycle

        async def receive_body() -> Any:
            message = await receive()
            if message["type"] == "http.request" and self._full_buffers:
                # The bytes that arrived with the head are first.
                message["body"] = message["body"] or self._full_buffers.popleft()
                if self._full_buffers:
                    message["more_body"] = True
                    cycle.message_event.set()
            return message

        await self._application(scope, receive_body, send)

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._remaining:
            return memoryview(self._body_buffer)[self._filled : self._filled + self._remaining]
        if self._head_buffer is None:
            self._head_buffer = memoryview(bytearray(_HEAD_BYTES))
        return self._head_buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._remaining:
            self._unset_keepalive_if_required()
            self._filled += nbytes
            self._remaining -= nbytes
            if self._filled == len(self._body_buffer) or not self._remaining:
                self._finish_buffer()
        else:
            assert self._head_buffer is not None  # get_buffer has set it.
            self.data_received(bytes(self._head_buffer[:nbytes]))

    def data_received(self, data: bytes) -> None:
        if self._bypasses_h11:
            self._pipelined += data
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
            # The application has not run yet, so cycle.body has the bytes that arrived with the
            # head.
            self._remaining = int(fields[b"content-length"]) - len(self.cycle.body)
            self._bypasses_h11 = True
            self._full_buffers.clear()
            self._body_buffer = bytearray(min(_BUFFER_BYTES, self._remaining))

    def on_response_complete(self) -> None:
        self._end_exchange()
        super().on_response_complete()
        pipelined, self._pipelined = self._pipelined, b""
        if pipelined and not self.transport.is_closing():
            self.data_received(pipelined)

    def _finish_buffer(self) -> None:
        cycle = self.cycle
        if not cycle.response_complete:
            with memoryview(self._body_buffer)[: self._filled] as view:
                self._full_buffers.append(bytes(view))
            cycle.more_body = self._remaining > 0
            if len(self._full_buffers) >= _PAUSE_AT:
                self.flow.pause_reading()  # The application's next receive resumes it.
            if len(self._full_buffers) >= _WAKE_AT or not self._remaining:
                cycle.message_event.set()
        self._filled = 0
        self._end_exchange()

    def _end_exchange(self) -> None:
        """Prepares for the next request, once the body is read and the answer is sent."""
        if self._bypasses_h11 and not self._remaining:
            self._body_buffer = bytearray()
            if self.cycle.response_complete:
                self._bypasses_h11 = False
                self._full_buffers.clear()
                self.conn = h11.Connection(h11.SERVER, HEAD_MAX)
