"""A managed identity for Azure's stock credentials, authorized by the identity header or the
server's token.

Decides the response of App Service's identity endpoint (api-version 2019-08-01), which
``DefaultAzureCredential`` calls if ``IDENTITY_ENDPOINT`` and ``IDENTITY_HEADER`` are set, and which
token it returns: for scoring, one that is valid for nothing else; otherwise the server's own. Must
not know how tokens are created.
"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request

from amphitrite.controlplane.api.http.dependencies import Here
from amphitrite.controlplane.api.http.middleware import secrets_equal
from amphitrite.controlplane.auth.scoring_tokens import is_for_scoring
from amphitrite.controlplane.services.services import Services
from amphitrite.dataplane.table.routing_table import Secret
from amphitrite.schemas.errors import Error

#: The server's token does not expire. Clients request it again after this many seconds.
KEPT_S = 24 * 3600

router = APIRouter()


@router.get("/identity/token")
def token(request: Request, here: Here, resource: str = "") -> dict[str, str]:
    """The token for ``resource``, which the response repeats."""
    if not _is_known(request, here):
        message = "the header X-IDENTITY-HEADER is missing or not valid"
        raise Error("AuthenticationFailed", message, hint='run `eval "$(ml server env)"` to set IDENTITY_HEADER')
    if not resource:
        raise Error("BadArgument", "the parameter resource is missing", target="resource")
    access, lifetime_s = access_token(here, resource)
    return {
        "access_token": access.reveal(),
        "expires_on": str(int(here.clock()) + lifetime_s),
        "resource": resource,
        "token_type": "Bearer",
    }


def access_token(here: Services, resource: str) -> tuple[Secret, int]:
    """The bearer token for ``resource`` (a scope without ``/.default``), and its lifetime in
    seconds.

    Raises Error Unsupported (``https://ml.azure.com`` if another issuer is configured) or
    RuntimeUnavailable.
    """
    if is_for_scoring(resource):
        return here.tokens.for_resource(resource)
    return here.credentials.token, KEPT_S


def _is_known(request: Request, here: Services) -> bool:
    """By the identity header; without it, by the server's token, which the CLI has."""
    header = request.headers.get("x-identity-header")
    if header is not None:
        return secrets_equal(header, here.credentials.identity_header)
    scheme, _, token_text = request.headers.get("authorization", "").partition(" ")
    return scheme.lower() == "bearer" and secrets_equal(token_text.strip(), here.credentials.token)
