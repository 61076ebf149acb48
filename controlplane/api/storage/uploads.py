"""Streaming a request body to the store, without holding it in memory.

Decides how a body is written and checked. Must not know what paths mean. It is the API's only
asynchronous work: the body arrives on the event loop and is written in threads.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from functools import partial

from anyio.to_thread import run_sync
from starlette.requests import Request

from amphitrite.controlplane.store.content.blob_rows import Blob
from amphitrite.controlplane.store.content.blob_store import BlobStore
from amphitrite.controlplane.store.content.spool import Upload, too_large
from amphitrite.schemas.errors import Error

BINARY = "application/octet-stream"
#: Bytes that are collected before a thread hashes and writes them.
_CHUNK = 1024 * 1024


async def blob(blobs: BlobStore, path: str, request: Request, metadata: Mapping[str, str]) -> Blob:
    """Stores the body as ``path``.

    Raises Error Md5Mismatch, BlobAlreadyExists (other content is there, and ``If-None-Match: *``),
    RequestTooLarge or MissingContentLengthHeader.
    """
    overwrite = request.headers.get("if-none-match") != "*"
    content_type = request.headers.get("x-ms-blob-content-type") or request.headers.get("content-type") or BINARY
    expected = content_md5(request.headers)
    _require_length(request.headers, blobs.limits.file_bytes)
    upload = await run_sync(blobs.begin)
    upload.hash_as(block=False, md5=expected is not None)
    try:
        await _receive(upload, request)
        digest, size = await run_sync(upload.finish, expected)
        put = partial(blobs.put, overwrite=overwrite, content_type=content_type, metadata=metadata)
        return await run_sync(put, path, digest, size)
    finally:
        await run_sync(upload.abort)


async def block(blobs: BlobStore, path: str, block_id: str, request: Request) -> None:
    """Stores the body as one block of ``path``. Raises as :func:`blob`."""
    expected = content_md5(request.headers)
    _require_length(request.headers, blobs.limits.file_bytes)
    upload = await run_sync(blobs.begin)
    upload.hash_as(block=True, md5=expected is not None)
    try:
        await _receive(upload, request)
        await run_sync(partial(blobs.put_block, path, block_id, upload, expected_md5=expected))
    finally:
        await run_sync(upload.abort)


def content_md5(headers: Mapping[str, str]) -> bytes | None:
    """The 16 bytes of ``Content-MD5``, None without it. Raises Error InvalidMd5 or Unsupported."""
    for name in ("x-ms-structured-body", "x-ms-content-crc64", "content-encoding"):
        if name in headers:
            raise Error("Unsupported", f"the header {name} is not supported", target=name)
    text = headers.get("content-md5")
    if text is None:
        return None
    try:
        digest = base64.b64decode(text, validate=True)
    except ValueError as exc:  # binascii.Error, or its parent for non-ASCII text.
        raise Error("InvalidMd5", f"Content-MD5 is not valid Base64: {text!r}", target="Content-MD5") from exc
    if len(digest) != 16:
        raise Error("InvalidMd5", f"Content-MD5 has {len(digest)} bytes; it must have 16", target="Content-MD5")
    return digest


def _require_length(headers: Mapping[str, str], limit: int) -> None:
    """Refuses a body whose declared length is too large. Others are counted as they arrive."""
    declared = headers.get("content-length")
    if declared is None and "transfer-encoding" not in headers:
        raise Error("MissingContentLengthHeader", "the header Content-Length is missing", target="Content-Length")
    if declared is not None and declared.isdigit() and int(declared) > limit:
        raise too_large(limit, int(declared))


async def _receive(upload: Upload, request: Request) -> None:
    """Hashes and writes one piece while the next one arrives."""
    gathered: list[bytes] = []
    size = 0
    writing: asyncio.Future[None] | None = None
    try:
        async for part in request.stream():
            gathered.append(part)
            size += len(part)
            if size >= _CHUNK:
                if writing is not None:
                    await writing
                writing, gathered, size = asyncio.ensure_future(run_sync(upload.write, *gathered)), [], 0
        if writing is not None:
            await writing
    finally:
        # The upload may be aborted in another thread, so the writing thread must have ended.
        if writing is not None:
            await asyncio.wait([writing])
            writing.exception()  # Retrieved even if the request failed for another reason.
    if gathered:
        await run_sync(upload.write, *gathered)
