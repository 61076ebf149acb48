"""Responses that stream content from the store.

Decides that a client that disconnects leaves nothing open. Must not know what the content is.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from amphitrite.controlplane.store.content.spool import Chunks


class ContentResponse(StreamingResponse):
    """A streaming response. ``size``: the number of bytes in ``chunks``."""

    def __init__(self, chunks: Chunks, size: int, headers: Mapping[str, str], status: int = 200) -> None:
        super().__init__(chunks, status, {**headers, "Content-Length": str(size)})
        self._chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            # No thread is reading now: even a cancelled response waits for its reading thread.
            self._chunks.close()
