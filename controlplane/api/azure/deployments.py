"""Routes of online deployments.

Decides only HTTP: everything else is one call away. Must not know how a deployment comes to serve.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from amphitrite.controlplane.api.azure import operations, previews, resource_bodies
from amphitrite.controlplane.api.http.dependencies import Here
from amphitrite.controlplane.api.http.paging import Page
from amphitrite.controlplane.api.http.request_bodies import Body, IfMatch, whole
from amphitrite.controlplane.api.http.workspace_scope import IN_WORKSPACE, WORKSPACE
from amphitrite.controlplane.runtimes import log_text
from amphitrite.controlplane.runtimes.runtime import Container
from amphitrite.controlplane.services import deployment_changes, wire_documents
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key

DEFAULT_TAIL = 5000
#: Azure's wire names of the containers whose logs there are, in lower case.
_CONTAINERS: Mapping[str, Container] = {
    "inferenceserver": "inference-server",
    "storageinitializer": "storage-initializer",
}

router = APIRouter(prefix=f"{WORKSPACE}/onlineEndpoints/{{endpoint}}/deployments", dependencies=IN_WORKSPACE)


@router.get("")
def list_(endpoint: str, here: Here, pager: Page) -> dict[str, Any]:
    parent = here.store.get_endpoint(endpoint)
    return pager.page(here.store.list_deployments(endpoint), lambda r: resource_bodies.deployment(r, parent.name, here))


@router.get("/{name}")
def get(endpoint: str, name: str, here: Here) -> Response:
    parent, record = here.store.get_endpoint(endpoint), here.store.get_deployment(endpoint, name)
    return JSONResponse(resource_bodies.deployment(record, parent.name, here), headers={"ETag": record.etag})


@router.put("/{name}")
def put(
    request: Request,
    endpoint: str,
    name: str,
    body: Body,
    conditions: IfMatch,
    here: Here,
    dry_run: previews.DryRun = False,
) -> Response:
    parent = here.store.get_endpoint(endpoint)
    document = wire_documents.deployment(parent.name, name, body)
    with here.store.exclusive():
        change = deployment_changes.prepare(here, parent, document)
        if dry_run:
            return previews.deployment(
                here, parent.name, change.former, change.document, on_cluster=change.place.compute is not None
            )
        record, operation = deployment_changes.put(
            here, endpoint, change, if_match=conditions.if_match, if_none_match=conditions.if_none_match
        )
    here.wake()
    return operations.changed(request, here, record, operation, resource_bodies.deployment(record, parent.name, here))


@router.delete("/{name}")
def delete(
    request: Request,
    endpoint: str,
    name: str,
    conditions: IfMatch,
    here: Here,
    force: Annotated[bool, Query()] = False,
) -> Response:
    """``force``: also when it has traffic, which then goes to the others in proportion to theirs."""
    with here.store.exclusive():
        operation = deployment_changes.delete(here, endpoint, name, if_match=conditions.if_match, force=force)
    here.wake()
    return operations.accepted(request, here, operation)


@router.post("/{name}/getLogs")
def get_logs(endpoint: str, name: str, body: Body, here: Here) -> dict[str, str]:
    record, tail, container = here.store.get_deployment(endpoint, name), _tail(body), _container(body)
    text = here.runtime.logs(key(endpoint), key(record.name), tail, container)
    instance = body.get("instance")
    return {"content": text if instance is None else log_text.select_instance(text, str(instance))}


def _tail(body: dict[str, Any]) -> int:
    tail = whole(body.get("tail", DEFAULT_TAIL))
    if tail is None or tail < 1:
        message = f"tail is {body['tail']!r}; a whole number of lines is needed, 1 or more"
        raise Error("BadArgument", message, target="tail")
    return tail


def _container(body: dict[str, Any]) -> Container:
    container = body.get("containerType")
    container = "InferenceServer" if container is None else str(container)
    if container.lower() not in _CONTAINERS:
        message = f"containerType is {container!r}; allowed: InferenceServer, StorageInitializer"
        raise Error("BadArgument", message, target="containerType")
    return _CONTAINERS[container.lower()]
