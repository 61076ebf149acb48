"""Routes of code assets: upload locations and versions.

Decides HTTP, the reply (Azure's CodeVersion resource), and which URLs are uploads of this server.
Code assets are stored and returned; no deployment runs them. Must not know files.
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
#: A URL of this server, whatever its host, which proxies change, and whatever clients append to the
#: account.
_UPLOADED = re.compile(rf"/storage/[^/]+/{PREFIX}(?P<upload>[^/]+)(?:/(?P<path>.*))?", re.DOTALL)
#: The property in which the SDK sends the hash of a directory's files.
_HASH = "hash_sha256"


@router.get("/{name}/versions")
def list_versions(name: str, here: Here, pager: Page, hash: str = "") -> dict[str, Any]:
    """With ``hash``: versions of any name with this content, so that nothing is uploaded twice."""
    versions = here.codes.versions_with_hash(hash) if hash else here.codes.list_versions(name)
    return pager.page(versions, lambda one: _version(one, here))


@router.post("/{name}/versions/{version}/startPendingUpload")
def start_upload(request: Request, name: str, version: str, body: Body, here: Here) -> dict[str, Any]:
    """A new upload location for each call. Unregistered uploads are deleted after a day."""
    kind = body.get("pendingUploadType", _TEMPORARY)
    if kind != _TEMPORARY:
        message = f"pendingUploadType is {kind!r}; allowed: {_TEMPORARY}"
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
    """Registers an upload, or changes a version's metadata."""
    document = wire_documents.code(name, version, body)
    wire.model_flags(body)
    hash_ = document.get("properties", {}).get(_HASH)
    files_at = _files_at(document["path"])
    stored, created = here.codes.put_version(name, version, document, files_at, hash=hash_, now=here.clock())
    return JSONResponse(_version(stored, here), 201 if created else 200)


def _files_at(address: str) -> str:
    """The path of the files among the blobs. Raises Error Unsupported, UserError or
    ResourceNotFound."""
    if not address.startswith(("https://", "http://")):
        return blob_prefix(address)
    match = _UPLOADED.fullmatch(urlsplit(address).path)
    if match is None:
        hint = "POST .../versions/{version}/startPendingUpload returns a URL to upload to"
        raise Error("Unsupported", "code cannot be registered from this URL", target="codeUri", hint=hint)
    return (code_store.directory(match["upload"]) + unquote(match["path"] or "")).strip("/")


def _version(code: CodeVersion, here: Services) -> dict[str, Any]:
    return {
        "id": code_id(here.workspace, code.name, code.version),
        "name": code.version,
        "type": f"{PROVIDER}/workspaces/codes/versions",
        **wire.code_to_wire(code.document),
        "systemData": resource_bodies.system_data(code.created_at, code.modified_at),
    }
