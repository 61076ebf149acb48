"""A reverse proxy in FastAPI and httpx: PORT FIRST SECOND KEY SHARE [CHAIN PRIVATE_KEY]. Runs in an
environment of its own, one uvicorn worker with uvloop and httptools."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import AsyncIterator

import httpx
import uvicorn
from fastapi import FastAPI, Request, Response

PORT, FIRST, SECOND, KEY, SHARE, *FILES = sys.argv[1:]
DROPPED = {"authorization", "host", "connection", "transfer-encoding", "content-length"}


@contextlib.asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=128)
    async with httpx.AsyncClient(timeout=60, limits=limits, trust_env=False) as client:
        app.state.client = client
        yield


app = FastAPI(lifespan=lifespan)


@app.api_route("/{path:path}", methods=["GET", "POST"])
async def forward(path: str, request: Request) -> Response:
    if request.headers.get("authorization") != f"Bearer {KEY}":
        return Response(status_code=401)
    port = FIRST if random.random() * 100 < float(SHARE) else SECOND
    headers = {name: value for name, value in request.headers.items() if name not in DROPPED}
    answer = await request.app.state.client.request(
        request.method, f"http://127.0.0.1:{port}/{path}", headers=headers, content=await request.body()
    )
    kept = {name: value for name, value in answer.headers.items() if name not in DROPPED}
    return Response(answer.content, answer.status_code, kept)


def main() -> None:
    chain, key = FILES or (None, None)
    uvicorn.run(
        app, host="127.0.0.1", port=int(PORT), log_level="error", access_log=False, ssl_certfile=chain, ssl_keyfile=key
    )


if __name__ == "__main__":
    main()
