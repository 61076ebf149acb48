"""Bytes on their way from a request to the store, never held in memory as a whole.

Decides how a streamed body is written and checked. Must not know paths' meaning. The only asynchronous work of the API:
the body arrives on the event loop, writing it happens in threads.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from functools import partial

from anyio.to_thread import run_sync
from starlette.requests import Request

from amphitrite.controlplane.store.blobs import Blob, BlobStore
from amphitrite.controlplane.store.spool import Upload
from amphitrite.schemas.errors import Error

BINARY = "application/octet-stream"
#: Bytes gathered before a thread is asked to write them.
_CHUNK = 1024 * 1024


async def blob(blobs: BlobStore, path: str, request: Request, metadata: Mapping[str, str]) -> Blob:
    """Store the body as ``path``. Raises Error Md5Mismatch, BlobAlreadyExists (``If-None-Match: *``), LimitExceeded."""
    overwrite = request.headers.get("if-none-match") != "*"
    content_type = request.headers.get("x-ms-blob-content-type") or request.headers.get("content-type") or BINARY
    expected = content_md5(request.headers)
    upload = await run_sync(blobs.begin)
    try:
        await _receive(upload, request)
        digest, size = await run_sync(upload.finish, expected)
        put = partial(blobs.put, overwrite=overwrite, content_type=content_type, metadata=metadata)
        return await run_sync(put, path, digest, size)
    finally:
        await run_sync(upload.abort)


async def block(blobs: BlobStore, path: str, block_id: str, request: Request) -> None:
    """Store the body as one block of ``path``. Raises as :func:`blob`."""
    expected = content_md5(request.headers)
    upload = await run_sync(blobs.begin)
    try:
        await _receive(upload, request)
        await run_sync(partial(blobs.put_block, path, block_id, upload, expected_md5=expected))
    finally:
        await run_sync(upload.abort)


def content_md5(headers: Mapping[str, str]) -> bytes | None:
    """The 16 bytes of ``Content-MD5``, None without one. Raises Error("BadArgument")."""
    if "x-ms-structured-body" in headers:
        raise Error("Unsupported", "structured bodies are not offered", target="x-ms-structured-body")
    text = headers.get("content-md5")
    if text is None:
        return None
    try:
        digest = base64.b64decode(text, validate=True)
    except ValueError as exc:  # binascii.Error, and its parent for what is not ASCII
        raise Error("BadArgument", f"Content-MD5 is no base64: {text!r}", target="Content-MD5") from exc
    if len(digest) != 16:
        raise Error("BadArgument", f"Content-MD5 has {len(digest)} bytes instead of 16", target="Content-MD5")
    return digest


async def _receive(upload: Upload, request: Request) -> None:
    gathered = bytearray()
    async for part in request.stream():
        gathered += part
        if len(gathered) >= _CHUNK:
            await run_sync(upload.write, bytes(gathered))
            gathered.clear()
    if gathered:
        await run_sync(upload.write, bytes(gathered))
