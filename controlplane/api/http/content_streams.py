"""Content on its way out.

Decides that a client that goes away leaves nothing open. Must not know what the content is.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from amphitrite.controlplane.store.content.spool import Chunks


class Streamed(StreamingResponse):
    """``size``: how many bytes ``chunks`` gives."""

    def __init__(self, chunks: Chunks, size: int, headers: Mapping[str, str], status: int = 200) -> None:
        super().__init__(chunks, status, {**headers, "Content-Length": str(size)})
        self._chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            # No thread reads any more: one that does is waited for even when this is cancelled.
            self._chunks.close()
