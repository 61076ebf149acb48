"""Routes of online endpoints.

Decides only HTTP: everything else is one call away. Must not know deployments' documents.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from amphitrite.controlplane.api.azure import operations, previews, resource_bodies
from amphitrite.controlplane.api.http.dependencies import Here
from amphitrite.controlplane.api.http.paging import Page
from amphitrite.controlplane.api.http.request_bodies import Body, IfMatch
from amphitrite.controlplane.api.http.workspace_scope import IN_WORKSPACE, WORKSPACE
from amphitrite.controlplane.services import endpoint_changes, wire_documents
from amphitrite.controlplane.services.services import Services
from amphitrite.controlplane.store.state.store import Record, Ref
from amphitrite.dataplane.table.routing_table import Auth
from amphitrite.schemas.errors import Error

#: What to do for the credentials of an endpoint, by its auth mode.
_INSTEAD = {
    "key": "ask for its keys: listKeys",
    "aml_token": "ask for a token for it: token",
    "aad_token": "ask your credential for a token of scope https://ml.azure.com/.default",
}

router = APIRouter(prefix=f"{WORKSPACE}/onlineEndpoints", dependencies=IN_WORKSPACE)


@router.get("")
def list_(here: Here, pager: Page) -> dict[str, Any]:
    return pager.part(here.store.list_endpoints, lambda record: resource_bodies.endpoint(record, here))


@router.get("/{name}")
def get(name: str, here: Here) -> Response:
    record = here.store.get_endpoint(name)
    return JSONResponse(resource_bodies.endpoint(record, here), headers={"ETag": record.etag})


@router.put("/{name}")
def put(
    request: Request, name: str, body: Body, conditions: IfMatch, here: Here, dry_run: previews.DryRun = False
) -> Response:
    document = wire_documents.endpoint(name, body)
    with here.store.exclusive():
        document = endpoint_changes.prepare(here, name, document)
        if dry_run:
            return previews.endpoint(here, name, endpoint_changes.former(here, name), document)
        record, operation = here.store.put_endpoint(
            document, if_match=conditions.if_match, if_none_match=conditions.if_none_match, now=here.clock()
        )
    here.wake()
    return operations.changed(request, here, record, operation, resource_bodies.endpoint(record, here))


@router.delete("/{name}")
def delete(request: Request, name: str, conditions: IfMatch, here: Here) -> Response:
    with here.store.exclusive():
        operation = here.store.delete(Ref(name.lower()), if_match=conditions.if_match, now=here.clock())
    here.wake()
    return operations.accepted(request, here, operation)


@router.post("/{name}/listKeys")
def list_keys(name: str, here: Here) -> dict[str, str]:
    _require_mode(here, name, "key")
    primary, secondary = here.store.get_keys(name)
    return {"primaryKey": primary.reveal(), "secondaryKey": secondary.reveal()}


@router.post("/{name}/regenerateKeys")
def regenerate_keys(request: Request, name: str, body: Body, here: Here) -> Response:
    """``keyValue`` is the current key in what Azure's SDK sends: it is not what the key becomes."""
    _require_mode(here, name, "key")
    operation = here.store.regenerate_key(name, _which(body), now=here.clock())
    here.wake()
    return operations.accepted(request, here, operation)


@router.post("/{name}/token")
def token(name: str, here: Here) -> dict[str, Any]:
    record = _require_mode(here, name, "aml_token")
    made = here.tokens.for_endpoint(record.name)
    return {
        "accessToken": made.text.reveal(),
        "expiryTimeUtc": made.expires_at,
        "refreshAfterTimeUtc": made.refresh_after,
        "tokenType": "Bearer",
    }


def _require_mode(here: Services, name: str, wanted: Auth) -> Record:
    """The endpoint, whose auth mode is this one. Raises Error("UserError") in Azure's words."""
    record = here.store.get_endpoint(name)
    mode = record.document.get("auth_mode", "key")
    if mode == wanted:
        return record
    what = {"key": "keys", "aml_token": "tokens of this server"}[wanted]
    message = f"Endpoint '{record.name}' does not use {what} for authentication. Its auth_mode is {mode}."
    raise Error("UserError", message, target=name, hint=_INSTEAD[mode])


def _which(body: dict[str, Any]) -> Any:
    which = str(body.get("keyType", "")).lower()
    if which not in ("primary", "secondary"):
        raise Error("BadArgument", f"keyType is {body.get('keyType')!r}; allowed: Primary, Secondary", target="keyType")
    return which
