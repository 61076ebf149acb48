"""Routes of code assets: where to upload, and versions.

Decides only HTTP, the shape of replies (B6), and which addresses are uploads of ours. A code asset is kept and given
back; no deployment runs one. Must not know files.
"""

from __future__ import annotations

import re
import uuid
from typing import Any
from urllib.parse import unquote, urlsplit

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from amphitrite.controlplane.api.azure import resource_bodies
from amphitrite.controlplane.api.http.dependencies import Here
from amphitrite.controlplane.api.http.paging import Page
from amphitrite.controlplane.api.http.request_bodies import Body
from amphitrite.controlplane.api.http.signed_access import signatures
from amphitrite.controlplane.api.http.workspace_scope import IN_WORKSPACE, WORKSPACE
from amphitrite.controlplane.api.storage.code_uploads import PREFIX
from amphitrite.controlplane.services import wire_documents
from amphitrite.controlplane.services.services import Services
from amphitrite.controlplane.store.assets import code_store
from amphitrite.controlplane.store.assets.code_store import CodeVersion
from amphitrite.controlplane.store.content.manifests import blob_prefix
from amphitrite.schemas import wire
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import PROVIDER, code_id

router = APIRouter(prefix=f"{WORKSPACE}/codes", dependencies=IN_WORKSPACE)

_TEMPORARY = "TemporaryBlobReference"
#: An address of ours: whatever the host, which proxies change, and whatever a client appends to the account.
_UPLOADED = re.compile(rf"/storage/[^/]+/{PREFIX}(?P<upload>[^/]+)(?:/(?P<path>.*))?", re.DOTALL)
#: How the SDK names the hash of a directory's files among the properties.
_HASH = "hash_sha256"


@router.get("/{name}/versions")
def list_versions(name: str, here: Here, pager: Page, hash: str = "") -> dict[str, Any]:
    """With ``hash``: versions of any name that have this content, so that nothing is uploaded twice."""
    found = here.codes.versions_with_hash(hash) if hash else here.codes.list_versions(name)
    return pager.page(found, lambda one: _version(one, here))


@router.post("/{name}/versions/{version}/startPendingUpload")
def start_upload(request: Request, name: str, version: str, body: Body, here: Here) -> dict[str, Any]:
    """An address of its own for each call; what nobody registers goes after a day."""
    kind = body.get("pendingUploadType", _TEMPORARY)
    if kind != _TEMPORARY:
        message = f"pendingUploadType is {kind!r}; allowed here: {_TEMPORARY}"
        raise Error("Unsupported", message, target="pendingUploadType")
    upload = code_store.new_upload()
    account = f"{here.settings.workspace}.blob.core.windows.net"
    address = f"https://{request.url.netloc}/storage/{account}/{PREFIX}{upload}"
    credential = {"credentialType": "SAS", "sasUri": f"{address}?{signatures(here).query(PREFIX + upload)}"}
    return {
        "pendingUploadType": _TEMPORARY,
        "pendingUploadId": str(uuid.UUID(upload)),
        "blobReferenceForConsumption": {
            "blobUri": address,
            "storageAccountArmId": f"{here.workspace}/storageAccounts/{here.settings.workspace}",
            "credential": credential,
        },
    }


@router.get("/{name}/versions/{version}")
def get_version(name: str, version: str, here: Here) -> dict[str, Any]:
    return _version(here.codes.get_version(name, version), here)


@router.put("/{name}/versions/{version}")
def put_version(name: str, version: str, body: Body, here: Here) -> Response:
    """Register what was uploaded, or change what describes it."""
    document = wire_documents.code(name, version, body)
    wire.model_flags(body)
    hash_ = document.get("properties", {}).get(_HASH)
    files_at = _files_at(document["path"])
    found, created = here.codes.put_version(name, version, document, files_at, hash=hash_, now=here.clock())
    return JSONResponse(_version(found, here), 201 if created else 200)


def _files_at(address: str) -> str:
    """The path of the files among the blobs. Raises Error Unsupported, UserError, ResourceNotFound."""
    if not address.startswith(("https://", "http://")):
        return blob_prefix(address)
    match = _UPLOADED.fullmatch(urlsplit(address).path)
    if match is None:
        hint = "POST …/versions/{version}/startPendingUpload gives an address to upload to"
        raise Error("Unsupported", "code cannot be registered from this address", target="codeUri", hint=hint)
    return (code_store.directory(match["upload"]) + unquote(match["path"] or "")).strip("/")


def _version(found: CodeVersion, here: Services) -> dict[str, Any]:
    return {
        "id": code_id(here.workspace, found.name, found.version),
        "name": found.version,
        "type": f"{PROVIDER}/workspaces/codes/versions",
        **wire.code_to_wire(found.document),
        "systemData": resource_bodies.system_data(found.created_at, found.modified_at),
    }
