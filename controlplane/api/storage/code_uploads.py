"""Containers for uploading code: one for each upload, authorized by its signed URL.

Decides who may write where. ``blobs`` decides what the calls do: a container is a directory among
the blobs. Must not know how signatures are created.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Query
from starlette.requests import Request
from starlette.responses import Response

from amphitrite.controlplane.api.http import signed_access, storage_xml
from amphitrite.controlplane.api.http.dependencies import Here
from amphitrite.controlplane.api.http.workspace_scope import CONTAINER
from amphitrite.controlplane.api.storage import blobs
from amphitrite.controlplane.store.assets import code_store
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key

#: The prefix of the container's name, before the name of the upload.
PREFIX = "codes-"


def _authorized(request: Request, account: str, upload: str, here: Here) -> str:
    """The directory of the upload. Raises Error AuthenticationFailed, AuthorizationFailed or
    ResourceNotFound."""
    # Azure's clients before 1.35 read code with the datastore's signature, because both have one
    # account.
    signed_access.require(request, PREFIX + upload, here, readers=CONTAINER)
    if key(account.split(".")[0]) != key(here.settings.workspace):
        raise Error("ResourceNotFound", f"the account {account} does not exist", target=account)
    return code_store.directory(upload)


Directory = Annotated[str, Depends(_authorized)]

router = APIRouter(prefix="/storage/{account}/" + PREFIX + "{upload}")


@router.get("")
def list_(
    request: Request,
    upload: str,
    directory: Directory,
    here: Here,
    restype: str = "",
    comp: str = "",
    prefix: str = "",
    delimiter: str = "",
    marker: str = "",
    include: str = "",
    maxresults: Annotated[int, Query(ge=1, le=blobs.LIST_MAX)] = blobs.LIST_MAX,
) -> Response:
    """Lists the blobs of the container, with names relative to it."""
    blobs.require_listing(restype, comp)
    page = here.blobs.list(directory + prefix, delimiter, marker=marker and directory + marker, limit=maxresults)
    start = len(directory)
    page = replace(
        page,
        blobs=tuple(replace(blob, path=blob.path[start:]) for blob in page.blobs),
        prefixes=tuple(name[start:] for name in page.prefixes),
        next_marker=None if page.next_marker is None else page.next_marker[start:],
    )
    metadata = "metadata" in include.split(",")
    body = storage_xml.listing(page, str(request.base_url), PREFIX + upload, prefix, delimiter, metadata=metadata)
    return Response(body, media_type="application/xml")


@router.head("/{path:path}")
def head(path: str, directory: Directory, here: Here) -> Response:
    return blobs.head(directory + path, here)


@router.get("/{path:path}")
def get(request: Request, path: str, directory: Directory, here: Here, comp: str = "") -> Response:
    return blobs.get(request, directory + path, here, comp)


@router.put("/{path:path}")
async def put(
    request: Request, upload: str, path: str, directory: Directory, here: Here, comp: str = "", blockid: str = ""
) -> Response:
    """As for any blob, until a version with these files is registered."""
    if not path:
        raise Error("BadArgument", "the blob has no name", target=directory)
    await run_sync(here.codes.require_unregistered, upload)
    return await blobs.put(request, directory + path, here, comp, blockid)
