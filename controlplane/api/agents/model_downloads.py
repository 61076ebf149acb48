"""Downloads of models by pods.

Decides what a pod gets for its grant, and who may read a file. These routes have their own
credentials (``auth.fetch_grants``); the control plane's token does not authorize them. Must not
know how a pod gets its grant.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from amphitrite.controlplane.api.http import byte_ranges
from amphitrite.controlplane.api.http.content_streams import ContentResponse
from amphitrite.controlplane.api.http.dependencies import Here
from amphitrite.controlplane.auth.fetch_grants import CONTENT_PATH, URL_LIFETIME_S, Grant
from amphitrite.controlplane.services.in_use_models import Uses, uses
from amphitrite.schemas.errors import Error

router = APIRouter()


@router.get("/fetch/v1/models/{digest}")
def model(request: Request, digest: str, here: Here) -> dict[str, Any]:
    """The files of a model version with a URL for each. ``in_use``: the digests that must stay in a
    cache.

    Raises Error AuthenticationFailed (not its grant, or one that has ended), ResourceNotFound or
    AuthorizationFailed (its workload is gone).
    """
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    grant = here.delivery.read_grant(text.strip()) if scheme.lower() == "bearer" else None
    if grant is None or grant.digest != digest:
        raise Error("AuthenticationFailed", "the request needs a grant for this model", target=digest)
    if here.delivery.has_ended(grant):
        hint = "the control plane replaces it in the workload's Secret; the pod's next attempt has the new one"
        raise Error("AuthenticationFailed", "the grant for this model has ended", target=digest, hint=hint)
    layout = here.models.layout(digest)
    in_use = uses(here.store, here.runtime)
    if not _has_holder(grant, in_use):
        message = "no deployment uses this model any more" if digest not in in_use.digests else "its workload is gone"
        raise Error("AuthorizationFailed", message, target=digest, hint="the requesting pod is about to be deleted")
    content = here.models.blobs.content
    files = [
        {
            "path": file.path,
            "digest": file.digest,
            "size": file.size,
            "url": content.url(file.digest, URL_LIFETIME_S) or here.delivery.signed_path(file.digest),
        }
        for file in layout.files
    ]
    return {
        "digest": digest,
        "bytes": sum(file.size for file in layout.files),
        "files": files,
        "empty_directories": list(layout.empty_directories),
        "in_use": sorted(in_use.digests),
    }


def _has_holder(grant: Grant, in_use: Uses) -> bool:
    """Whether the workload to which the grant was given exists. One of an earlier release names
    none: then an instance of that release."""
    if grant.workload is None:
        return grant.digest in in_use.without_end
    return (grant.workload, grant.digest) in in_use.workloads


@router.get(CONTENT_PATH + "/{digest}")
def content(request: Request, digest: str, here: Here, expires: str = "", signature: str = "") -> Response:
    """The bytes of one file, or the part in ``Range``.

    Raises Error AuthenticationFailed, AuthorizationFailed (the URL has expired), ResourceNotFound
    or InvalidRange.
    """
    if not here.delivery.is_signed(digest, expires, signature):
        raise Error("AuthenticationFailed", "the signature of this URL is not valid", target=digest)
    if here.delivery.is_expired(expires):
        raise Error("AuthorizationFailed", "this URL has expired", target=digest, hint="request the model again")
    size = here.models.blobs.content.size(digest)
    if size is None:
        raise Error("ResourceNotFound", "this content no longer exists", target=digest)
    part = byte_ranges.read(request.headers.get("range"))
    first, last = (0, size - 1) if part is None else (part[0], size - 1 if part[1] is None else min(part[1], size - 1))
    if part is not None and first > last:
        raise Error("InvalidRange", f"bytes {first}- of {size}", target=digest)
    try:
        # The pod compares the digest, and its message says which file is damaged.
        chunks = here.models.blobs.content.read(digest, first, last + 1, verified=False)
    except LookupError as exc:
        raise Error("ResourceNotFound", "this content no longer exists", target=digest) from exc
    headers = {"Content-Type": "application/octet-stream", "Accept-Ranges": "bytes"}
    if part is None:
        return ContentResponse(chunks, size, headers)
    return ContentResponse(chunks, last - first + 1, headers | {"Content-Range": f"bytes {first}-{last}/{size}"}, 206)
