"""Routes of environments: containers and versions.

Decides HTTP, the replies (Azure's EnvironmentContainer and EnvironmentVersion resources), and which
environments can never be used. Must not know what a deployment needs from one.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from amphitrite.controlplane.api.azure import resource_bodies
from amphitrite.controlplane.api.http.dependencies import Here
from amphitrite.controlplane.api.http.list_views import Order, View, read_order
from amphitrite.controlplane.api.http.paging import Page
from amphitrite.controlplane.api.http.request_bodies import Body
from amphitrite.controlplane.api.http.workspace_scope import IN_WORKSPACE, WORKSPACE
from amphitrite.controlplane.services import asset_deletions, wire_documents
from amphitrite.controlplane.services.services import Services
from amphitrite.controlplane.store.assets.environment_store import EnvironmentVersion
from amphitrite.schemas import wire
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import PROVIDER, environment_id

router = APIRouter(prefix=f"{WORKSPACE}/environments", dependencies=IN_WORKSPACE)


@router.get("")
def list_(here: Here, pager: Page, view: View = "ActiveOnly") -> dict[str, Any]:
    return pager.part(
        partial(here.environments.list_environments, view),
        lambda one: resource_bodies.container(one, "environments", environment_id(here.workspace, one.name)),
    )


@router.get("/{name}")
def get_container(name: str, here: Here) -> dict[str, Any]:
    container = here.environments.get_container(name)
    return resource_bodies.container(container, "environments", environment_id(here.workspace, container.name))


@router.put("/{name}")
def put_container(name: str, body: Body, here: Here) -> dict[str, Any]:
    """Archives or restores all versions. An environment exists through its versions, so this
    creates none."""
    texts, (archived, _) = wire_documents.container(name, body), wire.model_flags(body)
    container = here.environments.set_container_archived(name, archived, **texts, now=here.clock())
    return resource_bodies.container(container, "environments", environment_id(here.workspace, container.name))


@router.delete("/{name}")
def delete_container(name: str, here: Here) -> Response:
    """Deletes all versions, unless one of them is in use."""
    return Response(status_code=200 if asset_deletions.delete(here, "environment", name, None) else 204)


@router.get("/{name}/versions")
def list_versions(
    name: str, here: Here, pager: Page, view: View = "ActiveOnly", order: Order = "createdtime desc"
) -> dict[str, Any]:
    versions = here.environments.list_versions(name, view, read_order(order))
    return pager.page(versions, lambda one: _version(one, here))


@router.get("/{name}/versions/{version}")
def get_version(name: str, version: str, here: Here) -> dict[str, Any]:
    return _version(here.environments.get_version(name, version), here)


@router.put("/{name}/versions/{version}")
def put_version(name: str, version: str, body: Body, here: Here) -> Response:
    """Registers a version, or changes its metadata. 409 for different content: Azure's SDK then
    takes the next version. Whether this server can run the image is checked when a deployment uses
    it."""
    document, (archived, anonymous) = wire_documents.environment(name, version, body), wire.model_flags(body)
    _require_supported(document)
    stored, created = here.environments.put_version(
        name, version, document, is_anonymous=anonymous, is_archived=archived, now=here.clock()
    )
    return JSONResponse(_version(stored, here), 201 if created else 200)


@router.delete("/{name}/versions/{version}")
def delete_version(name: str, version: str, here: Here) -> Response:
    """Deletes a version that no deployment uses. As in Azure, 204 if there is none."""
    return Response(status_code=200 if asset_deletions.delete(here, "environment", name, version) else 204)


def _require_supported(document: dict[str, Any]) -> None:
    if "build" in document:
        hint = "build the image (docker build), push it to a registry, and set image to its name"
        raise Error("Unsupported", "this server builds no images", target="build", hint=hint)
    if document.get("os_type", "linux") != "linux":
        raise Error(
            "Unsupported",
            "this server runs Linux containers only",
            target="osType",
            hint="remove os_type, or set it to linux",
        )


def _version(version: EnvironmentVersion, here: Services) -> dict[str, Any]:
    body = wire.environment_to_wire(version.document, anonymous=version.is_anonymous, archived=version.is_archived)
    return {
        "id": environment_id(here.workspace, version.name, version.version),
        "name": version.version,
        "type": f"{PROVIDER}/workspaces/environments/versions",
        "properties": {"osType": "Linux", "tags": {}, "properties": {}, **body["properties"]},
        "systemData": resource_bodies.system_data(version.created_at, version.modified_at),
    }
