"""The one workspace: its own description, its datastore, and that no other is answered for.

Decides which workspace paths are ours. Must not know what lives in the workspace.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends
from starlette.requests import Request

from amphitrite.controlplane.api import signed_access
from amphitrite.controlplane.api.bodies import Body, whole
from amphitrite.controlplane.api.paging import Page
from amphitrite.controlplane.api.services import Here
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import PROVIDER, key, workspace_id

WORKSPACE = (
    f"/subscriptions/{{subscription}}/resourceGroups/{{resource_group}}/providers/{PROVIDER}/workspaces/{{workspace}}"
)
DATASTORE = "workspaceblobstore"
CONTAINER = "azureml-blobstore"
#: How long a signature for it may be good.
SECRET_HOURS_MAX = 24


def _ours(subscription: str, resource_group: str, workspace: str, here: Here) -> None:
    asked = workspace_id(subscription, resource_group, workspace)
    if key(asked) != key(here.workspace):
        raise Error(
            "ResourceNotFound",
            f"there is no workspace {subscription}/{resource_group}/{workspace}; "
            f"this server has one: {here.workspace.split('/')[2]}/{here.settings.resource_group}/"
            f"{here.settings.workspace} (subscription/resource group/workspace)",
            target=asked,
            hint="ml server env shows what clients of this server need",
        )


#: Put on each router of the workspace: another workspace is 404.
IN_WORKSPACE = [Depends(_ours)]

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
