"""Routes of the workspace: its description and its datastore.

Decides both replies. Must not know what the workspace contains.
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
from amphitrite.schemas.names import PROVIDER, key, registry_id

#: The maximum lifetime of a datastore signature, in hours.
SECRET_HOURS_MAX = 24

router = APIRouter(prefix=WORKSPACE, dependencies=IN_WORKSPACE)


@router.get("")
def show(here: Here) -> dict[str, Any]:
    """Azure's Workspace resource. The SDK copies ``location`` into its PUT requests."""
    name = here.settings.workspace
    return {
        "id": here.workspace,
        "name": name,
        "type": f"{PROVIDER}/workspaces",
        "location": here.settings.location,
        "tags": {},
        "kind": "Default",
        "sku": {"name": "Basic", "tier": "Basic"},
        "properties": {
            "friendlyName": name,
            "workspaceId": here.workspace,
            "provisioningState": "Succeeded",
            "containerRegistry": registry_id(here.workspace, here.settings.container_registry),
        },
    }


@router.get("/datastores")
def list_datastores(request: Request, here: Here, pager: Page) -> dict[str, Any]:
    """The only datastore, which is the default."""
    return pager.page([DATASTORE], lambda name: _datastore(request, here))


def _require_datastore(datastore: str) -> None:
    if key(datastore) != DATASTORE:
        message = f"the datastore {datastore} does not exist; the only one is {DATASTORE}"
        raise Error("ResourceNotFound", message, target=datastore)


@router.get("/datastores/{datastore}", dependencies=[Depends(_require_datastore)])
def datastore(request: Request, here: Here) -> dict[str, Any]:
    """The one datastore: where it is, and that clients send their own token (``credentialsType``
    None)."""
    return _datastore(request, here)


@router.post("/datastores/{datastore}/listSecrets", dependencies=[Depends(_require_datastore)])
def secrets(body: Body, here: Here) -> dict[str, str]:
    """A signature for the container, valid for ``expireAfterHours``. Azure's clients do not need
    it, because ``credentialsType`` None makes them send their bearer token; it is for programs
    without a token."""
    hours = whole(body.get("expireAfterHours", 1))
    if hours is None or not 1 <= hours <= SECRET_HOURS_MAX:
        message = f"expireAfterHours is {body['expireAfterHours']!r}; allowed: 1 to {SECRET_HOURS_MAX}"
        raise Error("BadArgument", message, target="expireAfterHours")
    return {"secretsType": "Sas", "sasToken": signed_access.signatures(here).query(CONTAINER, hours * 3600)}


def _datastore(request: Request, here: Here) -> dict[str, Any]:
    """The datastore. Clients build ``https://{accountName}.blob.{suffix}/{container}`` from it. The
    account name contains our host, port and a path, so requests reach our blob routes without DNS
    entries."""
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
