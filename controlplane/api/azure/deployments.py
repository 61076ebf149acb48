"""Routes of online deployments.

Decides the HTTP form of requests and answers. Must not know how a deployment is checked or started.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from amphitrite.controlplane.api.azure import operations, previews, resource_bodies
from amphitrite.controlplane.api.http.authors import By
from amphitrite.controlplane.api.http.dependencies import Here
from amphitrite.controlplane.api.http.paging import Page
from amphitrite.controlplane.api.http.request_bodies import Body, IfMatch, positive
from amphitrite.controlplane.api.http.workspace_scope import IN_WORKSPACE, WORKSPACE
from amphitrite.controlplane.core.history.revisions import Author
from amphitrite.controlplane.runtimes import log_text
from amphitrite.controlplane.runtimes.runtime import Container, LogQuery
from amphitrite.controlplane.services import deployment_changes, wire_documents
from amphitrite.controlplane.services.services import Services
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key

DEFAULT_TAIL = 5000
#: Azure's wire names of the containers that have logs, in lower case.
_CONTAINERS: Mapping[str, Container] = {
    "inferenceserver": "inference-server",
    "storageinitializer": "storage-initializer",
}

router = APIRouter(prefix=f"{WORKSPACE}/onlineEndpoints/{{endpoint}}/deployments", dependencies=IN_WORKSPACE)


@router.get("")
def list_(request: Request, endpoint: str, services: Here, pager: Page) -> dict[str, Any]:
    parent = services.store.get_endpoint(endpoint)
    return pager.page(
        services.store.list_deployments(endpoint),
        lambda record: resource_bodies.deployment(request, record, parent.name, services),
    )


@router.get("/{name}")
def get(request: Request, endpoint: str, name: str, services: Here) -> Response:
    parent, record = services.store.get_endpoint(endpoint), services.store.get_deployment(endpoint, name)
    body = resource_bodies.deployment(request, record, parent.name, services)
    return JSONResponse(body, headers={"ETag": record.etag})


@router.put("/{name}")
def put(
    request: Request,
    endpoint: str,
    name: str,
    body: Body,
    conditions: IfMatch,
    by: By,
    services: Here,
    dry_run: previews.DryRun = False,
) -> Response:
    parent = services.store.get_endpoint(endpoint)
    document = wire_documents.deployment(parent.name, name, body)
    with services.store.exclusive():
        change = deployment_changes.prepare(services, parent, document)
        if dry_run:
            on_cluster = change.place.compute is not None
            return previews.deployment(
                request, services, parent.name, change.former, change.document, on_cluster=on_cluster
            )
        record, operation = deployment_changes.put(
            services, endpoint, change, if_match=conditions.if_match, if_none_match=conditions.if_none_match, by=by
        )
    services.wake()
    return operations.changed(
        request, services, record, operation, resource_bodies.deployment(request, record, parent.name, services)
    )


@router.delete("/{name}")
def delete(
    request: Request,
    endpoint: str,
    name: str,
    conditions: IfMatch,
    by: By,
    services: Here,
    force: Annotated[bool, Query()] = False,
) -> Response:
    """``force``: delete it even if it has traffic. The others get its traffic, in proportion to
    their own."""
    with services.store.exclusive():
        operation = deployment_changes.delete(
            services, endpoint, name, if_match=conditions.if_match, force=force, by=by
        )
    services.wake()
    return operations.accepted(request, services, operation)


@router.post("/{name}/pause")
def pause(request: Request, endpoint: str, name: str, conditions: IfMatch, by: By, services: Here) -> Response:
    """End its instances, and answer its requests with 503, until it is resumed."""
    return _set_pause(request, endpoint, name, conditions.if_match, replace(by, cause="pause"), services, paused=True)


@router.post("/{name}/resume")
def resume(request: Request, endpoint: str, name: str, conditions: IfMatch, by: By, services: Here) -> Response:
    """Start its instances again. Requests are held until one is ready."""
    return _set_pause(request, endpoint, name, conditions.if_match, replace(by, cause="resume"), services, paused=False)


def _set_pause(
    request: Request, endpoint: str, name: str, if_match: str | None, by: Author, services: Services, *, paused: bool
) -> Response:
    parent = services.store.get_endpoint(endpoint)
    record, operation = services.store.set_pause(endpoint, name, paused, if_match=if_match, now=services.clock(), by=by)
    services.wake()
    shown = resource_bodies.deployment(request, record, parent.name, services)
    return operations.changed(request, services, record, operation, shown)


@router.post("/{name}/getLogs")
def get_logs(endpoint: str, name: str, body: Body, services: Here) -> dict[str, str]:
    record = services.store.get_deployment(endpoint, name)
    query = LogQuery(_tail(body), _container(body), _since(body), _previous(body))
    text = services.runtime.logs(key(endpoint), key(record.name), query)
    instance = body.get("instance")
    return {"content": text if instance is None else log_text.select_instance(text, str(instance))}


def _tail(body: dict[str, Any]) -> int:
    return positive(body.get("tail", DEFAULT_TAIL), "tail", "a whole number of lines, 1 or more")


def _since(body: dict[str, Any]) -> float | None:
    if body.get("sinceSeconds") is None:
        return None
    return float(positive(body["sinceSeconds"], "sinceSeconds", "a whole number of seconds, 1 or more"))


def _previous(body: dict[str, Any]) -> bool:
    previous = body.get("previous") or False
    if not isinstance(previous, bool):
        raise Error("BadArgument", f"previous is {previous!r}; allowed: true, false", target="previous")
    return previous


def _container(body: dict[str, Any]) -> Container:
    container = body.get("containerType")
    container = "InferenceServer" if container is None else str(container)
    if container.lower() not in _CONTAINERS:
        message = f"containerType is {container!r}; allowed: InferenceServer, StorageInitializer"
        raise Error("BadArgument", message, target="containerType")
    return _CONTAINERS[container.lower()]
