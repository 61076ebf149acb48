"""Routes of environments: versions and what holds them together.

Decides only HTTP, the shape of replies (B4, B5), and which environments could never be honoured. Must not know what a
deployment needs of one.
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
from amphitrite.controlplane.services import wire_documents
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
        lambda found: resource_bodies.container(found, "environments", environment_id(here.workspace, found.name)),
    )


@router.get("/{name}")
def get_container(name: str, here: Here) -> dict[str, Any]:
    found = here.environments.get_container(name)
    return resource_bodies.container(found, "environments", environment_id(here.workspace, found.name))


@router.put("/{name}")
def put_container(name: str, body: Body, here: Here) -> dict[str, Any]:
    """Archive or restore all versions; they are what makes an environment, so there is no creating one without."""
    texts, (archived, _) = wire_documents.container(name, body), wire.model_flags(body)
    found = here.environments.set_container_archived(name, archived, **texts, now=here.clock())
    return resource_bodies.container(found, "environments", environment_id(here.workspace, found.name))


@router.get("/{name}/versions")
def list_versions(
    name: str, here: Here, pager: Page, view: View = "ActiveOnly", order: Order = "createdtime desc"
) -> dict[str, Any]:
    found = here.environments.list_versions(name, view, read_order(order))
    return pager.page(found, lambda one: _version(one, here))


@router.get("/{name}/versions/{version}")
def get_version(name: str, version: str, here: Here) -> dict[str, Any]:
    return _version(here.environments.get_version(name, version), here)


@router.put("/{name}/versions/{version}")
def put_version(name: str, version: str, body: Body, here: Here) -> Response:
    """Register, or change what describes it. 409 for other content: Azure's SDK, which was given no version, then
    takes the next one. Whether this server can run the image is judged where a deployment wants it to."""
    document, (archived, anonymous) = wire_documents.environment(name, version, body), wire.model_flags(body)
    _refuse_hopeless(document)
    found, created = here.environments.put_version(
        name, version, document, is_anonymous=anonymous, is_archived=archived, now=here.clock()
    )
    return JSONResponse(_version(found, here), 201 if created else 200)


def _refuse_hopeless(document: dict[str, Any]) -> None:
    if "build" in document:
        hint = "build it (docker build), push it to a registry, and give its name as image"
        raise Error("Unsupported", "images are not built here", target="build", hint=hint)
    if document.get("os_type", "linux") != "linux":
        raise Error("Unsupported", "instances run on Linux", target="osType", hint="remove os_type, or set it to linux")


def _version(found: EnvironmentVersion, here: Services) -> dict[str, Any]:
    body = wire.environment_to_wire(found.document, anonymous=found.is_anonymous, archived=found.is_archived)
    return {
        "id": environment_id(here.workspace, found.name, found.version),
        "name": found.version,
        "type": f"{PROVIDER}/workspaces/environments/versions",
        "properties": {"osType": "Linux", "tags": {}, "properties": {}, **body["properties"]},
        "systemData": resource_bodies.system_data(found.created_at, found.modified_at),
    }
