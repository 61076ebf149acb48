"""Routes of online endpoints.

Decides only HTTP: everything else is one call away. Must not know deployments' documents.
"""

from __future__ import annotations

from collections.abc import Mapping
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
from amphitrite.controlplane.store.protocol import Ref
from amphitrite.schemas.errors import Error

router = APIRouter(prefix=f"{WORKSPACE}/onlineEndpoints", dependencies=IN_WORKSPACE)


@router.get("")
def list_(here: Here, pager: Page) -> dict[str, Any]:
    return pager.page(here.store.list_endpoints(), lambda record: replies.endpoint(record, here))


@router.get("/{name}")
def get(name: str, here: Here) -> Response:
    record = here.store.get_endpoint(name)
    return JSONResponse(replies.endpoint(record, here), headers={"ETag": record.etag})


@router.put("/{name}")
def put(request: Request, name: str, body: Body, conditions: IfMatch, here: Here) -> Response:
    document = documents.endpoint(name, body)
    with here.store.exclusive():
        document = _checked(here, name, document)
        record, operation = here.store.put_endpoint(
            document, if_match=conditions.if_match, if_none_match=conditions.if_none_match, now=here.clock()
        )
    here.wake()
    return operations.changed(request, here, record, operation, replies.endpoint(record, here))


@router.delete("/{name}")
def delete(request: Request, name: str, conditions: IfMatch, here: Here) -> Response:
    with here.store.exclusive():
        operation = here.store.delete(Ref(name.lower()), if_match=conditions.if_match, now=here.clock())
    here.wake()
    return operations.accepted(request, here, operation)


@router.post("/{name}/listKeys")
def list_keys(name: str, here: Here) -> dict[str, str]:
    primary, secondary = here.store.get_keys(name)
    return {"primaryKey": primary.reveal(), "secondaryKey": secondary.reveal()}


@router.post("/{name}/regenerateKeys")
def regenerate_keys(request: Request, name: str, body: Body, here: Here) -> Response:
    """``keyValue`` is the current key in what Azure's SDK sends: it is not what the key becomes."""
    operation = here.store.regenerate_key(name, _which(body), now=here.clock())
    here.wake()
    return operations.accepted(request, here, operation)


@router.post("/{name}/token")
def token(name: str, here: Here) -> None:
    record = here.store.get_endpoint(name)
    message = f"endpoint {record.name} does not use tokens for authentication; its auth_mode is key"
    raise Error("Unsupported", message, target=name, hint="get its keys: ml online-endpoint get-credentials")


def _checked(here: Services, name: str, document: dict[str, Any]) -> dict[str, Any]:
    """The document with its compute's ARM id. Raises Error("InvalidDocument")."""
    computes = [one.name for one in references.clusters(here)]
    violations = rules.check_endpoint(
        document, deployments=_deployments(here, name), computes=computes, former=_former(here, name)
    )
    documents.refuse(violations, name)
    if not document.get("compute"):
        return document
    return {**document, "compute": references.compute_arm_id(here, document["compute"])}


def _former(here: Services, name: str) -> Mapping[str, Any] | None:
    """The document of the endpoint that is there and stays."""
    try:
        record = here.store.get_endpoint(name)
    except Error as error:
        if error.code == "ResourceNotFound":
            return None
        raise
    return None if record.deleting else record.document


def _deployments(here: Services, endpoint: str) -> list[str]:
    """Names of the endpoint's deployments that stay; none of an endpoint that is not there yet."""
    try:
        return [record.name for record in here.store.list_deployments(endpoint) if not record.deleting]
    except Error as error:
        if error.code == "ResourceNotFound":
            return []
        raise


def _which(body: dict[str, Any]) -> Any:
    which = str(body.get("keyType", "")).lower()
    if which not in ("primary", "secondary"):
        raise Error("BadArgument", f"keyType is {body.get('keyType')!r}; allowed: Primary, Secondary", target="keyType")
    return which
