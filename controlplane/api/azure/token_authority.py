"""A token authority for Azure credentials with a client secret.

Decides the two routes that ``EnvironmentCredential(disable_instance_discovery=True)`` calls below
``AZURE_AUTHORITY_HOST``, the only client, and OAuth's error responses (RFC 6749, section 5.2),
which its library shows to the user. Must not know what the token authorizes.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

from anyio.to_thread import run_sync
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from amphitrite.controlplane.api.azure.managed_identity import access_token
from amphitrite.controlplane.api.http.dependencies import Here
from amphitrite.controlplane.api.http.middleware import secrets_equal
from amphitrite.controlplane.api.http.request_bodies import read_bytes
from amphitrite.schemas.errors import Error

#: One tenant with one client, whose secret is the identity header.
TENANT = CLIENT = "amphitrite"
_SCOPE_END = "/.default"
_BODY_MAX = 16 * 1024
_FIELDS_MAX = 32

router = APIRouter()


@router.get("/{tenant}/v2.0/.well-known/openid-configuration")
def configuration(request: Request, tenant: str) -> Response:
    """The token endpoint, with the host that the client used."""
    if tenant.lower() != TENANT:
        return _unknown_tenant(tenant)
    base = f"https://{request.url.netloc}/{TENANT}"
    return JSONResponse(
        {
            "issuer": f"{base}/v2.0",
            "authorization_endpoint": f"{base}/oauth2/v2.0/authorize",
            "token_endpoint": f"{base}/oauth2/v2.0/token",
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
            "grant_types_supported": ["client_credentials"],
            "response_types_supported": ["token"],
        }
    )


@router.post("/{tenant}/oauth2/v2.0/token")
async def token(request: Request, tenant: str, here: Here) -> Response:
    """The client credentials grant (RFC 6749, section 4.4). ``scope``: a resource followed by
    ``/.default``."""
    form = _form(await read_bytes(request, _BODY_MAX))
    if form is None:
        return _refusal("invalid_request", "the body must be application/x-www-form-urlencoded, with each field once")
    if tenant.lower() != TENANT:
        return _unknown_tenant(tenant)
    grant = form.get("grant_type", "")
    if grant != "client_credentials":
        return _refusal("unsupported_grant_type", f"grant_type is {grant[:80]!r}; allowed: client_credentials")
    if form.get("client_id", "").lower() != CLIENT or not secrets_equal(
        form.get("client_secret", ""), here.credentials.identity_header
    ):
        hint = "run `ml server env --authentication environment` to see the settings for clients"
        return _refusal("invalid_client", f"client_id or client_secret is not valid; {hint}", 401)
    resource = form.get("scope", "").removesuffix(_SCOPE_END)
    if not resource or " " in resource or resource == form["scope"]:
        return _refusal("invalid_scope", f"scope must be one resource followed by {_SCOPE_END}")
    try:
        access, lifetime_s = await run_sync(access_token, here, resource)
    except Error as error:
        return _refusal("invalid_scope" if error.status < 500 else "temporarily_unavailable", str(error), error.status)
    answer = {"token_type": "Bearer", "expires_in": lifetime_s, "ext_expires_in": lifetime_s}
    return JSONResponse({**answer, "access_token": access.reveal()})


def _form(body: bytes) -> dict[str, str] | None:
    """The fields of a form; None if the body is no form or has a field twice."""
    try:
        fields = parse_qs(body.decode("utf-8"), keep_blank_values=True, max_num_fields=_FIELDS_MAX, errors="strict")
    except ValueError:
        return None
    if any(len(values) > 1 for values in fields.values()):
        return None
    return {name: values[0] for name, values in fields.items()}


def _unknown_tenant(tenant: str) -> Response:
    return _refusal("invalid_tenant", f"the tenant {tenant[:80]!r} does not exist; the only tenant is {TENANT}")


def _refusal(error: str, description: str, status: int = 400) -> Response:
    body: dict[str, Any] = {"error": error, "error_description": description}
    return JSONResponse(body, status)
