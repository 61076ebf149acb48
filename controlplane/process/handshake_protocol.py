"""TLS of a connection whose handshake may fail, without garbage that only the collector finds.

Decides what is left of such a connection: nothing. asyncio keeps its error, whose traceback leads
back to the connection with its buffer of 256 KiB. An attacker who connects and says nothing would
take that much memory with each connection until a full collection, which comes late. A client
without TLS gets an answer first (``plain_http``). Must not know limits or requests.

Rests on what asyncio does not document (decision 0007).
"""

from __future__ import annotations

import asyncio
from asyncio import sslproto
from typing import Any

from amphitrite.controlplane.process import plain_http


class HandshakeProtocol(sslproto.SSLProtocol):
    """asyncio's protocol, which forgets why a handshake has failed: nobody reads that."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        # It is made when the first byte arrives. Python 3.10 has none.
        if hasattr(self, "_ssl_buffer"):
            self._ssl_buffer = bytearray()
            self._ssl_buffer_view = memoryview(self._ssl_buffer)

    def _on_handshake_complete(self, handshake_exc: BaseException | type[BaseException] | None) -> None:
        if handshake_exc is None:
            super()._on_handshake_complete(None)
            return
        # Some releases of Python give the class of an error.
        error = handshake_exc() if isinstance(handshake_exc, type) else handshake_exc
        plain: Any = self._transport  # typeshed has a wider type.
        if plain is not None and plain_http.is_plain(error):
            # The first bytes on the connection, so the kernel takes all of them at once.
            plain.write(plain_http.answer(plain.get_extra_info("sockname")))
        # The task that has accepted the connection waits for this. An error in it would refer to
        # the task's frame, and the frame to it.
        waiter: asyncio.Future[Any] | None = self._waiter
        self._waiter = None  # type: ignore[assignment]
        try:
            super()._on_handshake_complete(error)
        finally:
            error.__traceback__ = None
            if waiter is not None and not waiter.done():
                waiter.cancel()


def use() -> None:
    """Makes asyncio's loops use it in this process."""
    sslproto.SSLProtocol = HandshakeProtocol  # type: ignore[misc]
