"""Routes of the one workspace: its own description and its datastore.

Decides what is said of both. Must not know what lives in the workspace.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends
from starlette.requests import Request

from amphitrite.controlplane.api.http import signed_access
from amphitrite.controlplane.api.http.dependencies import Here
from amphitrite.controlplane.api.http.paging import Page
from amphitrite.controlplane.api.http.request_bodies import Body, whole
from amphitrite.controlplane.api.http.workspace_scope import CONTAINER, DATASTORE, IN_WORKSPACE, WORKSPACE
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import PROVIDER, key

#: How long a signature for it may be good.
SECRET_HOURS_MAX = 24

router = APIRouter(prefix=WORKSPACE, dependencies=IN_WORKSPACE)


@router.get("")
def show(here: Here) -> dict[str, Any]:
    """B1; the SDK copies ``location`` into what it PUTs."""
    name = here.settings.workspace
    return {
        "id": here.workspace,
        "name": name,
        "type": f"{PROVIDER}/workspaces",
        "location": here.settings.location,
        "tags": {},
        "kind": "Default",
        "sku": {"name": "Basic", "tier": "Basic"},
        "properties": {"friendlyName": name, "workspaceId": here.workspace, "provisioningState": "Succeeded"},
    }


@router.get("/datastores")
def list_datastores(request: Request, here: Here, pager: Page) -> dict[str, Any]:
    """There is one, and it is the default."""
    return pager.page([DATASTORE], lambda name: _datastore(request, here))


def _known(datastore: str) -> None:
    if key(datastore) != DATASTORE:
        message = f"there is no datastore {datastore}; this workspace has {DATASTORE} only"
        raise Error("ResourceNotFound", message, target=datastore)


@router.get("/datastores/{datastore}", dependencies=[Depends(_known)])
def datastore(request: Request, here: Here) -> dict[str, Any]:
    """The one datastore: where it is, and that clients send their own token (``credentialsType`` None)."""
    return _datastore(request, here)


@router.post("/datastores/{datastore}/listSecrets", dependencies=[Depends(_known)])
def secrets(body: Body, here: Here) -> dict[str, str]:
    """A signature that opens the container for ``expireAfterHours``. Azure's clients do without, as ``credentialsType``
    None tells them to send their bearer token; whoever asks hands it on to a program that has none."""
    hours = whole(body.get("expireAfterHours", 1))
    if hours is None or not 1 <= hours <= SECRET_HOURS_MAX:
        message = f"expireAfterHours is {body['expireAfterHours']!r}; allowed: 1 to {SECRET_HOURS_MAX}"
        raise Error("BadArgument", message, target="expireAfterHours")
    return {"secretsType": "Sas", "sasToken": signed_access.signatures(here).query(CONTAINER, hours * 3600)}


def _datastore(request: Request, here: Here) -> dict[str, Any]:
    """Clients make ``https://{accountName}.blob.{suffix}/{container}`` of it. The host comes with our port and a path,
    so that they arrive at our blob routes without a name service."""
    return {
        "id": f"{here.workspace}/datastores/{DATASTORE}",
        "name": DATASTORE,
        "type": f"{PROVIDER}/workspaces/datastores",
        "properties": {
            "datastoreType": "AzureBlob",
            "accountName": f"{request.url.netloc}/storage/{here.settings.workspace}",
            "containerName": CONTAINER,
            "endpoint": "core.windows.net",
            "protocol": "https",
            "credentials": {"credentialsType": "None"},
            "isDefault": True,
            "tags": {},
            "properties": {},
        },
    }
