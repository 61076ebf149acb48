"""An HTTP client's way into an app without a socket: the whole app runs, the network does not."""

from __future__ import annotations

import httpx
from anyio.from_thread import BlockingPortal
from fastapi import FastAPI


class InProcess(httpx.BaseTransport):
    """Requests straight into an ASGI app, which runs in a thread of ``portal``."""

    def __init__(self, app: FastAPI, portal: BlockingPortal) -> None:
        self._app, self._portal = httpx.ASGITransport(app), portal

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.stream = httpx.ByteStream(request.read())
        return self._portal.call(self._exchange, request)

    async def _exchange(self, request: httpx.Request) -> httpx.Response:
        answer = await self._app.handle_async_request(request)
        return httpx.Response(answer.status_code, headers=answer.headers, content=await answer.aread())
