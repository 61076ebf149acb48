"""Routes of online deployments.

Decides only HTTP: everything else is one call away. Must not know how a deployment comes to serve.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from amphitrite.controlplane.api.azure import operations, previews, resource_bodies
from amphitrite.controlplane.api.http.dependencies import Here
from amphitrite.controlplane.api.http.paging import Page
from amphitrite.controlplane.api.http.request_bodies import Body, IfMatch, whole
from amphitrite.controlplane.api.http.workspace_scope import IN_WORKSPACE, WORKSPACE
from amphitrite.controlplane.core.rules import deployment_rules, traffic_removal
from amphitrite.controlplane.core.rules.deployment_rules import Place
from amphitrite.controlplane.runtimes import log_text
from amphitrite.controlplane.runtimes.runtime import Container
from amphitrite.controlplane.services import admission, container_resolution, references, wire_documents
from amphitrite.controlplane.services.services import Services
from amphitrite.controlplane.store.state.store import Operation, Record, Ref
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
        place = references.place(here, parent.document)
        former = _former(here, endpoint, name)
        document, model = _checked(here, parent.name, document, former, place)
        waiting = admission.admit(here, place, former, document, model)
        if dry_run:
            on_cluster = place.compute is not None
            return previews.deployment(here, parent.name, former, document, on_cluster=on_cluster)
        record, operation = here.store.put_deployment(
            endpoint, document, model, compute=place.name,
            if_match=conditions.if_match, if_none_match=conditions.if_none_match, now=here.clock(),
        )  # fmt: skip
    if waiting is not None:
        # The operation says so before anything is touched; the next pass of the reconciler goes on from there.
        told = replace(record.status, phase="Waiting", message=waiting)
        here.store.record({record.ref: told}, now=here.clock())
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
        operation = _delete(here, endpoint, name, conditions.if_match, force=force)
    here.wake()
    return operations.accepted(request, here, operation)


@router.post("/{name}/getLogs")
def get_logs(endpoint: str, name: str, body: Body, here: Here) -> dict[str, str]:
    record, tail, container = here.store.get_deployment(endpoint, name), _tail(body), _container(body)
    text = here.runtime.logs(key(endpoint), key(record.name), tail, container)
    instance = body.get("instance")
    return {"content": text if instance is None else log_text.select_instance(text, str(instance))}


def _checked(
    here: Services, endpoint: str, document: dict[str, Any], former: Record | None, place: Place
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The document with its model and environment pinned to versions and its instance type named, and what the store
    takes as its model. Raises Error("InvalidDocument")."""
    target = f"{endpoint}/{document['name']}"
    name, bounds = key(document["name"]), here.settings.limits.bounds
    siblings = [record for record in here.store.list_deployments(endpoint) if record.ref.deployment != name]
    found = references.find(here.models, str(document.get("model")))
    if found and former and former.document.get("model") == references.arm_id(here.workspace, found):
        # A model may be archived while it serves: it is new users that it is hidden from.
        found = replace(found, archived=False)
    environment = container_resolution.resolve(here, document, found, former, place)
    if found is not None and environment.model_names is not None:
        found = replace(found, model_names=environment.model_names)
    violations = deployment_rules.check_deployment(
        document, siblings=len(siblings), model=found, bounds=bounds, place=place
    )
    wire_documents.refuse([*violations, *environment.violations], target)
    assert found is not None  # no model is a violation
    pinned = {**document, "model": references.arm_id(here.workspace, found)}
    if environment.id is not None:
        pinned["environment"] = environment.id
    if place.compute is not None:
        # What the compute's default is may change; what runs is not to change with it.
        pinned.setdefault("instance_type", place.compute.default_instance_type)
    model = {**here.models.reference(found.name, found.version), "model_names": list(found.model_names)}
    return pinned, {**model, **({"container": asdict(environment.container)} if environment.container else {})}


def _former(here: Services, endpoint: str, name: str) -> Record | None:
    """The deployment of this name that is there already."""
    return next((r for r in here.store.list_deployments(endpoint) if r.ref.deployment == key(name)), None)


def _delete(here: Services, endpoint: str, name: str, if_match: str | None, *, force: bool) -> Operation | None:
    try:
        parent, record = here.store.get_endpoint(endpoint), here.store.get_deployment(endpoint, name)
    except Error as error:
        if error.code == "ResourceNotFound":
            return None
        raise
    # An endpoint that goes takes its deployments along, traffic or not.
    violations = (
        [] if parent.deleting or record.deleting else traffic_removal.check_removal(parent.document, record.name)
    )
    if violations and force:
        wanted = {tag.strip() for tag in (if_match or "*").split(",")}
        if not wanted & {"*", record.etag}:
            message = f"it has changed since it was read: If-Match is {if_match}, its etag is {record.etag}"
            raise Error("PreconditionFailed", message, target=f"{parent.name}/{name}")
        # Both are in force with the next table: whoever was sent to it is sent elsewhere, and what it has, it ends.
        left = traffic_removal.traffic_without(parent.document, record.name)
        here.store.put_endpoint(left, if_match=None, if_none_match=False, now=here.clock())
    elif violations:
        raise Error("UserError", violations[0].message, target=f"{parent.name}/{record.name}", hint=violations[0].hint)
    return here.store.delete(Ref(key(endpoint), key(name)), if_match=if_match, now=here.clock())


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
