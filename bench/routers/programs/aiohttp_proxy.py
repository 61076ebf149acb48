"""A reverse proxy in aiohttp: PORT FIRST SECOND KEY SHARE [CHAIN PRIVATE_KEY]. Runs in an
environment of its own."""

from __future__ import annotations

import random
import ssl
import sys
from collections.abc import AsyncIterator

import uvloop  # type: ignore[import-not-found,unused-ignore]
from aiohttp import ClientSession, ClientTimeout, TCPConnector, web  # type: ignore[import-not-found,unused-ignore]

PORT, FIRST, SECOND, KEY, SHARE, *FILES = sys.argv[1:]
DROPPED = {"authorization", "host", "connection", "transfer-encoding"}


async def forward(request: web.Request) -> web.StreamResponse:
    if request.headers.get("authorization") != f"Bearer {KEY}":
        return web.Response(status=401)
    port = FIRST if random.random() * 100 < float(SHARE) else SECOND
    headers = {name: value for name, value in request.headers.items() if name.lower() not in DROPPED}
    url = f"http://127.0.0.1:{port}{request.path_qs}"
    session = request.app["session"]
    async with session.request(request.method, url, headers=headers, data=request.content) as answer:
        response = web.StreamResponse(status=answer.status)
        for name, value in answer.headers.items():
            if name.lower() not in DROPPED:
                response.headers[name] = value
        await response.prepare(request)
        async for piece in answer.content.iter_any():
            await response.write(piece)
        await response.write_eof()
        return response


async def session(app: web.Application) -> AsyncIterator[None]:
    app["session"] = ClientSession(
        connector=TCPConnector(limit=0), timeout=ClientTimeout(total=60), auto_decompress=False
    )
    yield
    await app["session"].close()


def main() -> None:
    uvloop.install()
    app = web.Application(client_max_size=100 * 1024 * 1024)
    app.cleanup_ctx.append(session)
    app.router.add_route("*", "/{path:.*}", forward)
    context = None
    if FILES:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*FILES)
    web.run_app(app, host="127.0.0.1", port=int(PORT), ssl_context=context, access_log=None, print=None)


if __name__ == "__main__":
    main()
