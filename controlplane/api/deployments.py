"""Routes of online deployments.

Decides only HTTP: everything else is one call away. Must not know how a deployment comes to serve.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from amphitrite.controlplane.api import documents, operations, references, replies
from amphitrite.controlplane.api.bodies import Body, IfMatch
from amphitrite.controlplane.api.paging import Page
from amphitrite.controlplane.api.services import Here, Services
from amphitrite.controlplane.api.workspace import IN_WORKSPACE, WORKSPACE
from amphitrite.controlplane.core import rules
from amphitrite.controlplane.store.protocol import Operation, Ref
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key

DEFAULT_TAIL = 5000
_NO_INITIALIZER = (
    "Models are read in place from this server's own store: nothing is fetched before an instance starts.\n"
)

router = APIRouter(prefix=f"{WORKSPACE}/onlineEndpoints/{{endpoint}}/deployments", dependencies=IN_WORKSPACE)


@router.get("")
def list_(endpoint: str, here: Here, pager: Page) -> dict[str, Any]:
    parent = here.store.get_endpoint(endpoint)
    return pager.page(here.store.list_deployments(endpoint), lambda r: replies.deployment(r, parent.name, here))


@router.get("/{name}")
def get(endpoint: str, name: str, here: Here) -> Response:
    parent, record = here.store.get_endpoint(endpoint), here.store.get_deployment(endpoint, name)
    return JSONResponse(replies.deployment(record, parent.name, here), headers={"ETag": record.etag})


@router.put("/{name}")
def put(request: Request, endpoint: str, name: str, body: Body, conditions: IfMatch, here: Here) -> Response:
    parent = here.store.get_endpoint(endpoint)
    document = documents.deployment(parent.name, name, body)
    with here.writing:
        document, model = _checked(here, parent.name, document)
        record, operation = here.store.put_deployment(
            endpoint, document, model,
            if_match=conditions.if_match, if_none_match=conditions.if_none_match, now=here.clock(),
        )  # fmt: skip
    here.wake()
    return operations.changed(request, here, record, operation, replies.deployment(record, parent.name, here))


@router.delete("/{name}")
def delete(request: Request, endpoint: str, name: str, conditions: IfMatch, here: Here) -> Response:
    with here.writing:
        operation = _delete(here, endpoint, name, conditions.if_match)
    here.wake()
    return operations.accepted(request, here, operation)


@router.post("/{name}/getLogs")
def get_logs(endpoint: str, name: str, body: Body, here: Here) -> dict[str, str]:
    record, tail = here.store.get_deployment(endpoint, name), _tail(body)
    if _container(body) == "storageinitializer":
        return {"content": _NO_INITIALIZER}
    return {"content": here.runtime.logs(key(endpoint), key(record.name), tail)}


def _checked(here: Services, endpoint: str, document: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The document with its model pinned to a version, and that model. Raises Error("InvalidDocument")."""
    target = f"{endpoint}/{document['name']}"
    name, bounds = key(document["name"]), here.settings.limits.bounds
    siblings = {record.ref.deployment: record for record in here.store.list_deployments(endpoint)}
    former = siblings.pop(name, None)
    found = references.find(here.models, str(document.get("model")))
    if found and former and former.document.get("model") == references.arm_id(here.workspace, found):
        # A model may be archived while it serves: it is new users that it is hidden from.
        found = replace(found, archived=False)
    documents.refuse(rules.check_deployment(document, siblings=len(siblings), model=found, bounds=bounds), target)
    assert found is not None  # no model is a violation
    pinned = references.arm_id(here.workspace, found)
    return {**document, "model": pinned}, here.models.reference(found.name, found.version)


def _delete(here: Services, endpoint: str, name: str, if_match: str | None) -> Operation | None:
    try:
        parent, record = here.store.get_endpoint(endpoint), here.store.get_deployment(endpoint, name)
    except Error as error:
        if error.code == "ResourceNotFound":
            return None
        raise
    # An endpoint that goes takes its deployments along, traffic or not.
    violations = [] if parent.deleting or record.deleting else rules.check_removal(parent.document, record.name)
    if violations:
        raise Error("UserError", violations[0].message, target=f"{parent.name}/{record.name}", hint=violations[0].hint)
    return here.store.delete(Ref(key(endpoint), key(name)), if_match=if_match, now=here.clock())


def _tail(body: dict[str, Any]) -> int:
    tail = body.get("tail", DEFAULT_TAIL)
    if isinstance(tail, bool) or not isinstance(tail, int) or tail < 1:
        raise Error("BadArgument", f"tail is {tail!r}; a whole number of lines is needed, 1 or more", target="tail")
    return tail


def _container(body: dict[str, Any]) -> str:
    container = str(body.get("containerType") or "InferenceServer")
    if container.lower() not in ("inferenceserver", "storageinitializer"):
        message = f"containerType is {container!r}; allowed: InferenceServer, StorageInitializer"
        raise Error("BadArgument", message, target="containerType")
    return container.lower()
