"""Routes of models: containers and versions.

Decides HTTP and the replies (Azure's ModelContainer and ModelVersion resources). Must not know
files.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from amphitrite.controlplane.store.assets.model_store import Container, ModelVersion
from amphitrite.schemas import wire
from amphitrite.schemas.names import PROVIDER, model_id
from amphitrite.schemas.repository.models import layout

router = APIRouter(prefix=f"{WORKSPACE}/models", dependencies=IN_WORKSPACE)


@router.get("")
def list_(here: Here, pager: Page, view: View = "ActiveOnly") -> dict[str, Any]:
    return pager.part(partial(here.models.list_models, view), lambda one: _container(one, here))


@router.get("/{name}")
def get_container(name: str, here: Here) -> dict[str, Any]:
    return _container(here.models.get_container(name), here)


@router.put("/{name}")
def put_container(name: str, body: Body, here: Here) -> dict[str, Any]:
    """Archives or restores all versions. A model exists through its versions, so this
    creates none."""
    texts, (archived, _) = wire_documents.container(name, body), wire.model_flags(body)
    return _container(here.models.set_container_archived(name, archived, **texts, now=here.clock()), here)


@router.delete("/{name}")
def delete_container(name: str, here: Here) -> Response:
    """Deletes all versions, unless one of them is in use."""
    return Response(status_code=200 if asset_deletions.delete(here, "model", name, None) else 204)


@router.get("/{name}/versions")
def list_versions(
    name: str,
    here: Here,
    pager: Page,
    view: View = "ActiveOnly",
    order: Order = "createdtime desc",
) -> dict[str, Any]:
    return pager.page(here.models.list_versions(name, view, read_order(order)), lambda one: _version(one, here))


@router.get("/{name}/versions/{version}")
def get_version(name: str, version: str, here: Here) -> dict[str, Any]:
    return _version(here.models.get_version(name, version), here)


@router.put("/{name}/versions/{version}")
def put_version(name: str, version: str, body: Body, here: Here) -> Response:
    """Registers a version, or changes its metadata. Not a long-running operation, because the files
    are already uploaded."""
    document, (archived, anonymous) = wire_documents.model(name, version, body), wire.model_flags(body)
    stored, created = here.models.put_version(
        name, version, document, is_anonymous=anonymous, is_archived=archived, now=here.clock()
    )
    return JSONResponse(_version(stored, here, _notes(stored, here)), 201 if created else 200)


@router.delete("/{name}/versions/{version}")
def delete_version(name: str, version: str, here: Here) -> Response:
    """Deletes a version that no deployment uses. As in Azure, 204 if there is none."""
    return Response(status_code=200 if asset_deletions.delete(here, "model", name, version) else 204)


def _notes(version: ModelVersion, here: Services) -> list[str]:
    """What the user should know of how the files were taken."""
    if version.document.get("type") != "triton_model" or here.models.folder(version):
        return []
    return [layout.single_model_note(version.model_names[0])]


def _version(version: ModelVersion, here: Services, notes: Sequence[str] = ()) -> dict[str, Any]:
    body = wire.model_to_wire(
        version.document, version.document["path"], anonymous=version.is_anonymous, archived=version.is_archived
    )
    return {
        "id": model_id(here.workspace, version.name, version.version),
        "name": version.version,
        "type": f"{PROVIDER}/workspaces/models/versions",
        # Always an object, because the SDK reads its keys.
        "properties": {"flavors": {}, **body["properties"], **({"notes": list(notes)} if notes else {})},
        "systemData": resource_bodies.system_data(version.created_at, version.modified_at),
    }


def _container(container: Container, here: Services) -> dict[str, Any]:
    return resource_bodies.container(container, "models", model_id(here.workspace, container.name))
