"""Routes of online endpoints.

Decides the HTTP form of requests and answers. Must not know deployments' documents.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from amphitrite.controlplane.api.azure import operations, previews, resource_bodies
from amphitrite.controlplane.api.http.authors import By
from amphitrite.controlplane.api.http.dependencies import Here
from amphitrite.controlplane.api.http.paging import Page
from amphitrite.controlplane.api.http.request_bodies import Body, IfMatch
from amphitrite.controlplane.api.http.workspace_scope import IN_WORKSPACE, WORKSPACE
from amphitrite.controlplane.core.desired.resources import token_binding
from amphitrite.controlplane.services import endpoint_changes, rollout_changes, wire_documents
from amphitrite.controlplane.services.services import Services
from amphitrite.controlplane.store.state.store import Record, Ref
from amphitrite.dataplane.table.routing_table import Auth
from amphitrite.schemas.errors import Error

#: How to get credentials for an endpoint, by its auth mode.
_HINTS = {
    "key": "get its keys: listKeys",
    "aml_token": "get a token for it: token",
    "aad_token": "get a token with the scope https://ml.azure.com/.default from your credential",
}

router = APIRouter(prefix=f"{WORKSPACE}/onlineEndpoints", dependencies=IN_WORKSPACE)


@router.get("")
def list_(request: Request, services: Here, pager: Page) -> dict[str, Any]:
    return pager.part(services.store.list_endpoints, lambda record: resource_bodies.endpoint(request, record, services))


@router.get("/{name}")
def get(request: Request, name: str, services: Here) -> Response:
    record = services.store.get_endpoint(name)
    return JSONResponse(resource_bodies.endpoint(request, record, services), headers={"ETag": record.etag})


@router.put("/{name}")
def put(
    request: Request,
    name: str,
    body: Body,
    conditions: IfMatch,
    by: By,
    services: Here,
    dry_run: previews.DryRun = False,
) -> Response:
    document = wire_documents.endpoint(name, body)
    with services.store.exclusive():
        document = endpoint_changes.prepare(services, name, document)
        former = endpoint_changes.former(services, name)
        if dry_run:
            return previews.endpoint(request, services, name, former, document)
        document, rollout = rollout_changes.of_document(services, former, document, by)
        record, operation = services.store.put_endpoint(
            document,
            if_match=conditions.if_match,
            if_none_match=conditions.if_none_match,
            now=services.clock(),
            by=by,
            rollout=rollout,
        )
    services.wake()
    return operations.changed(request, services, record, operation, resource_bodies.endpoint(request, record, services))


@router.delete("/{name}")
def delete(request: Request, name: str, conditions: IfMatch, services: Here) -> Response:
    with services.store.exclusive():
        operation = services.store.delete(Ref(name.lower()), if_match=conditions.if_match, now=services.clock())
    services.wake()
    return operations.accepted(request, services, operation)


@router.post("/{name}/listKeys")
def list_keys(name: str, services: Here) -> dict[str, str]:
    _require_mode(services, name, "key")
    primary, secondary = services.store.get_keys(name)
    return {"primaryKey": primary.reveal(), "secondaryKey": secondary.reveal()}


@router.post("/{name}/regenerateKeys")
def regenerate_keys(request: Request, name: str, body: Body, services: Here) -> Response:
    """Ignores ``keyValue``: Azure's SDK sends the current key there, not the new one. Tokens are
    bound to the keys, so all tokens of an endpoint with ``aml_token`` are revoked."""
    _require_mode(services, name, "key", "aml_token")
    operation = services.store.regenerate_key(name, _key_type(body), now=services.clock())
    services.wake()
    return operations.accepted(request, services, operation)


@router.post("/{name}/token")
def token(name: str, services: Here) -> dict[str, Any]:
    record = _require_mode(services, name, "aml_token")
    binding = token_binding(record.name, services.store.get_keys(name))
    made = services.tokens.for_endpoint(record.name, binding)
    return {
        "accessToken": made.text.reveal(),
        "expiryTimeUtc": made.expires_at,
        "refreshAfterTimeUtc": made.refresh_after,
        "tokenType": "Bearer",
    }


def _require_mode(services: Services, name: str, *wanted: Auth) -> Record:
    """The endpoint, if it has one of the auth modes ``wanted``. Raises Error("UserError") with
    Azure's message, about the first one."""
    record = services.store.get_endpoint(name)
    mode = record.document.get("auth_mode", "key")
    if mode in wanted:
        return record
    what = {"key": "keys", "aml_token": "tokens of this server"}[wanted[0]]
    message = f"Endpoint '{record.name}' does not use {what} for authentication. Its auth_mode is {mode}."
    raise Error("UserError", message, target=name, hint=_HINTS[mode])


def _key_type(body: dict[str, Any]) -> Any:
    key_type = str(body.get("keyType", "")).lower()
    if key_type not in ("primary", "secondary"):
        raise Error("BadArgument", f"keyType is {body.get('keyType')!r}; allowed: Primary, Secondary", target="keyType")
    return key_type
