"""The part of Azure Blob Storage's protocol for uploading and downloading model files.

Decides which calls are answered and how. Must not know where bytes are stored. Source: the calls of
Azure's SDK when it registers and downloads a model; ``x-ms-version`` is ignored.

The account in the path is the workspace's name, with a suffix that clients append
(``.blob.core.windows.net``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from email.utils import formatdate
from typing import Annotated

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Query
from starlette.requests import Request
from starlette.responses import Response

from amphitrite.controlplane.api.http import byte_ranges, signed_access, storage_xml
from amphitrite.controlplane.api.http.content_streams import ContentResponse
from amphitrite.controlplane.api.http.dependencies import Here
from amphitrite.controlplane.api.http.request_bodies import read_bytes
from amphitrite.controlplane.api.http.workspace_scope import CONTAINER
from amphitrite.controlplane.api.storage import blob_names, uploads
from amphitrite.controlplane.services.services import Services
from amphitrite.controlplane.store.content.blob_rows import Blob
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key

#: The maximum bytes of a block list: 50,000 ids of 64 characters, with their tags.
BLOCK_LIST_MAX = 8 * 1024 * 1024
LIST_MAX = 5000
_META = "x-ms-meta-"
#: Clients set it on one file when all files of an upload have been sent.
_COMPLETED = "upload_status"
#: Preconditions of a write that are not supported and therefore refused.
_CONDITIONS = ("if-match", "if-modified-since", "if-unmodified-since", "x-ms-if-tags", "x-ms-lease-id")
_META_NAME = re.compile(r"[a-z_][a-z0-9_]*\Z")


def _require_container(request: Request, account: str, container: str, here: Here) -> None:
    signed_access.require(request, container, here)
    if key(account.split(".")[0]) != key(here.settings.workspace) or container != CONTAINER:
        message = f"account {account} has no container {container}"
        raise Error("ResourceNotFound", message, target=container)


router = APIRouter(prefix="/storage/{account}/{container}", dependencies=[Depends(_require_container)])

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
    if _COMPLETED in blob.metadata and not here.blobs.upload_is_intact(path):
        # A client that sees this mark does not send the files again, which would repair them.
        blob = replace(blob, metadata={name: value for name, value in blob.metadata.items() if name != _COMPLETED})
    return Response(headers=_headers(blob) | {"Content-Length": str(blob.size)})


@router.get("/{path:path}")
def get(request: Request, path: str, here: Here, comp: Comp = "") -> Response:
    """The content, or the part in ``x-ms-range`` or ``Range``."""
    if comp:
        raise _unsupported("comp", comp, "none")
    blob = here.blobs.head(path)
    if_match = request.headers.get("if-match", "*")
    if if_match not in ("*", blob.etag):
        raise Error("PreconditionFailed", f"{path} has changed since it was read", target=path)
    part = _range(request.headers)
    if part is None:
        return ContentResponse(here.blobs.read(blob), blob.size, _headers(blob))
    first, last = part[0], min(blob.size - 1 if part[1] is None else part[1], blob.size - 1)
    content = here.blobs.read(blob, first, last)
    headers = {"Content-Range": f"bytes {first}-{last}/{blob.size}"}
    return ContentResponse(content, last - first + 1, _headers(blob) | headers, 206)


@router.put("/{path:path}")
async def put(request: Request, path: str, here: Here, comp: Comp = "", blockid: str = "") -> Response:
    """Stores a blob in one request. With ``comp`` it stores a block, a block list or metadata."""
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
        message = f"x-ms-blob-type is {kind!r}; allowed: BlockBlob"
        raise Error("InvalidHeaderValue", message, target="x-ms-blob-type")
    return _created(await uploads.blob(here.blobs, path, request, metadata(request.headers)), 201)


def require_listing(restype: str, comp: str) -> None:
    """A container only supports listing. Raises Error("Unsupported")."""
    if (restype, comp) != ("container", "list"):
        raise _unsupported("restype and comp", f"{restype}, {comp}", "restype=container&comp=list")


def metadata(headers: Mapping[str, str]) -> dict[str, str]:
    """``x-ms-meta-*`` headers without the prefix. Raises Error("InvalidMetadata") for names that
    Azure refuses."""
    result = {name[len(_META) :]: value for name, value in headers.items() if name.startswith(_META)}
    for name in result:
        if not _META_NAME.match(name):
            message = f"the metadata name {name!r} may only contain letters, digits and _, and not begin with a digit"
            raise Error("InvalidMetadata", message, target=f"{_META}{name}")
    return result


def _require_conditions(headers: Mapping[str, str]) -> None:
    """``If-None-Match: *`` is the only supported precondition. Raises
    Error("ConditionHeadersNotSupported")."""
    unsupported = [name for name in _CONDITIONS if name in headers]
    if headers.get("if-none-match", "*") != "*":
        unsupported.append("if-none-match")
    if unsupported:
        message = f"the header {unsupported[0]} is not supported for writes; allowed: If-None-Match: *"
        raise Error("ConditionHeadersNotSupported", message, target=unsupported[0])


def _commit(here: Services, path: str, body: bytes, headers: Mapping[str, str]) -> Blob:
    return here.blobs.commit_blocks(
        path,
        storage_xml.block_ids(body),
        overwrite=headers.get("if-none-match") != "*",
        content_type=headers.get("x-ms-blob-content-type") or uploads.BINARY,
        metadata=metadata(headers),
    )


def _created(blob: Blob, status: int) -> Response:
    # No Content-MD5: clients compare it with the body that they sent, which for a block list is not
    # the blob.
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
    """(first, last) of the requested range, None for the whole blob."""
    return byte_ranges.read(headers.get("x-ms-range", headers.get("range")), "x-ms-range")


def _http_date(seconds: float) -> str:
    return formatdate(seconds, usegmt=True)


def _unsupported(what: str, value: str, allowed: str) -> Error:
    return Error("Unsupported", f"{what} is {value!r}; allowed: {allowed}", target=what)
