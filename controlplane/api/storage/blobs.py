"""The part of Azure Blob Storage's protocol that model files are sent and fetched by.

Decides which of its calls are answered and how. Must not know where bytes are kept. Source: the calls that Azure's SDK
makes when a model is registered and downloaded; ``x-ms-version`` is not looked at.

The account in the path is the workspace's name with whatever a client appends (``.blob.core.windows.net``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import formatdate
from typing import Annotated

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Query
from starlette.requests import Request
from starlette.responses import Response

from amphitrite.controlplane.api.http import byte_ranges, signed_access, storage_xml
from amphitrite.controlplane.api.http.content_streams import Streamed
from amphitrite.controlplane.api.http.dependencies import Here
from amphitrite.controlplane.api.http.request_bodies import read_bytes
from amphitrite.controlplane.api.http.workspace_scope import CONTAINER
from amphitrite.controlplane.api.storage import blob_names, uploads
from amphitrite.controlplane.services.services import Services
from amphitrite.controlplane.store.content.blob_rows import Blob
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key

#: Bytes of a block list: 50,000 ids of 64 characters, with their tags.
BLOCK_LIST_MAX = 8 * 1024 * 1024
LIST_MAX = 5000
_META = "x-ms-meta-"
#: Preconditions of a write that are not looked at, and therefore not taken.
_CONDITIONS = ("if-match", "if-modified-since", "if-unmodified-since", "x-ms-if-tags", "x-ms-lease-id")
_META_NAME = re.compile(r"[a-z_][a-z0-9_]*\Z")


def _ours(request: Request, account: str, container: str, here: Here) -> None:
    signed_access.require(request, container, here)
    if key(account.split(".")[0]) != key(here.settings.workspace) or container != CONTAINER:
        message = f"there is no container {container} in account {account}"
        raise Error("ResourceNotFound", message, target=container)


router = APIRouter(prefix="/storage/{account}/{container}", dependencies=[Depends(_ours)])

Comp = Annotated[str, Query()]


@router.get("")
def list_(
    request: Request,
    here: Here,
    restype: str = "",
    comp: Comp = "",
    prefix: str = "",
    delimiter: str = "",
    marker: str = "",
    include: str = "",
    maxresults: Annotated[int, Query(ge=1, le=LIST_MAX)] = LIST_MAX,
) -> Response:
    require_listing(restype, comp)
    listing = here.blobs.list(prefix, delimiter, marker=marker, limit=maxresults)
    metadata = "metadata" in include.split(",")
    body = storage_xml.listing(listing, str(request.base_url), CONTAINER, prefix, delimiter, metadata=metadata)
    return Response(body, media_type="application/xml")


@router.head("/{path:path}")
def head(path: str, here: Here) -> Response:
    blob = here.blobs.head(path)
    return Response(headers=_headers(blob) | {"Content-Length": str(blob.size)})


@router.get("/{path:path}")
def get(request: Request, path: str, here: Here, comp: Comp = "") -> Response:
    """The content, or the part of it that ``x-ms-range`` or ``Range`` names."""
    if comp:
        raise _unsupported("comp", comp, "none")
    blob = here.blobs.head(path)
    wanted = request.headers.get("if-match", "*")
    if wanted not in ("*", blob.etag):
        raise Error("PreconditionFailed", f"{path} has changed since it was read", target=path)
    part = _range(request.headers)
    if part is None:
        return Streamed(here.blobs.read(blob), blob.size, _headers(blob))
    first, last = part[0], min(blob.size - 1 if part[1] is None else part[1], blob.size - 1)
    content = here.blobs.read(blob, first, last)
    headers = {"Content-Range": f"bytes {first}-{last}/{blob.size}"}
    return Streamed(content, last - first + 1, _headers(blob) | headers, 206)


@router.put("/{path:path}")
async def put(request: Request, path: str, here: Here, comp: Comp = "", blockid: str = "") -> Response:
    """A blob in one piece; ``comp`` makes it a block, a list of blocks or metadata."""
    blob_names.check(path, request.scope.get("raw_path"))
    here.blobs.check_path(path)
    _require_conditions(request.headers)
    if comp == "block":
        await uploads.block(here.blobs, path, blockid, request)
        return Response(status_code=201)
    if comp == "blocklist":
        body = await read_bytes(request, BLOCK_LIST_MAX)
        return _created(await run_sync(_commit, here, path, body, request.headers), 201)
    if comp == "metadata":
        return _created(await run_sync(here.blobs.set_metadata, path, metadata(request.headers)), 200)
    if comp:
        raise _unsupported("comp", comp, "block, blocklist, metadata")
    kind = request.headers.get("x-ms-blob-type", "BlockBlob")
    if kind != "BlockBlob":
        message = f"x-ms-blob-type is {kind!r}; allowed here: BlockBlob"
        raise Error("InvalidHeaderValue", message, target="x-ms-blob-type")
    return _created(await uploads.blob(here.blobs, path, request, metadata(request.headers)), 201)


def require_listing(restype: str, comp: str) -> None:
    """A container is listed and nothing else. Raises Error("Unsupported")."""
    if (restype, comp) != ("container", "list"):
        raise _unsupported("restype and comp", f"{restype}, {comp}", "restype=container&comp=list")


def metadata(headers: Mapping[str, str]) -> dict[str, str]:
    """``x-ms-meta-*`` without the prefix. Raises Error("InvalidMetadata") for names that Azure does not take either."""
    found = {name[len(_META) :]: value for name, value in headers.items() if name.startswith(_META)}
    for name in found:
        if not _META_NAME.match(name):
            message = f"metadata name {name!r} is not made of letters, digits and _, the first no digit"
            raise Error("InvalidMetadata", message, target=f"{_META}{name}")
    return found


def _require_conditions(headers: Mapping[str, str]) -> None:
    """``If-None-Match: *`` is the only precondition of a write. Raises Error("ConditionHeadersNotSupported")."""
    found = [name for name in _CONDITIONS if name in headers]
    if headers.get("if-none-match", "*") != "*":
        found.append("if-none-match")
    if found:
        message = f"the header {found[0]} is not offered for writes; allowed: If-None-Match: *"
        raise Error("ConditionHeadersNotSupported", message, target=found[0])


def _commit(here: Services, path: str, body: bytes, headers: Mapping[str, str]) -> Blob:
    return here.blobs.commit_blocks(
        path,
        storage_xml.block_ids(body),
        overwrite=headers.get("if-none-match") != "*",
        content_type=headers.get("x-ms-blob-content-type") or uploads.BINARY,
        metadata=metadata(headers),
    )


def _created(blob: Blob, status: int) -> Response:
    # No Content-MD5: clients compare it with what they sent, which for a block list is not the blob.
    return Response(status_code=status, headers={"ETag": blob.etag, "Last-Modified": _http_date(blob.modified_at)})


def _headers(blob: Blob) -> dict[str, str]:
    return {
        "ETag": blob.etag,
        "Last-Modified": _http_date(blob.modified_at),
        "Content-Type": blob.content_type,
        "Accept-Ranges": "bytes",
        "x-ms-blob-type": "BlockBlob",
        **{f"{_META}{name}": value for name, value in blob.metadata.items()},
    }


def _range(headers: Mapping[str, str]) -> tuple[int, int | None] | None:
    """(first, last) of the range asked for, None for all."""
    return byte_ranges.read(headers.get("x-ms-range", headers.get("range")), "x-ms-range")


def _http_date(seconds: float) -> str:
    return formatdate(seconds, usegmt=True)


def _unsupported(what: str, found: str, allowed: str) -> Error:
    return Error("Unsupported", f"{what} is {found!r}; allowed here: {allowed}", target=what)
