"""A managed identity for stock Azure credentials, for whoever knows the identity header or the server's token.

Decides the answer of App Service's identity endpoint (api-version 2019-08-01), which ``DefaultAzureCredential`` asks
when ``IDENTITY_ENDPOINT`` and ``IDENTITY_HEADER`` are set, and which token opens what: to score, one that opens nothing
else; for everything else, the server's own. Must not know how tokens are made.
"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request

from amphitrite.controlplane.api.http.dependencies import Here
from amphitrite.controlplane.api.http.middleware import same
from amphitrite.controlplane.auth.scoring_tokens import is_for_scoring
from amphitrite.controlplane.services.services import Services
from amphitrite.dataplane.table.routing_table import Secret
from amphitrite.schemas.errors import Error

#: The server's token does not end; a client that keeps it longer than this asks again.
KEPT_S = 24 * 3600

router = APIRouter()


@router.get("/identity/token")
def token(request: Request, here: Here, resource: str = "") -> dict[str, str]:
    """``resource`` is echoed."""
    if not _is_known(request, here):
        message = "the header X-IDENTITY-HEADER is missing or is not this server's"
        raise Error("AuthenticationFailed", message, hint='eval "$(ml server env)" sets IDENTITY_HEADER')
    if not resource:
        raise Error("BadArgument", "the parameter resource is missing", target="resource")
    given, lifetime_s = access_token(here, resource)
    return {
        "access_token": given.reveal(),
        "expires_on": str(int(here.clock()) + lifetime_s),
        "resource": resource,
        "token_type": "Bearer",
    }


def access_token(here: Services, resource: str) -> tuple[Secret, int]:
    """The bearer token for ``resource`` (a scope less ``/.default``), and the seconds for which it may be kept.

    Raises Error Unsupported (``https://ml.azure.com``, where another issuer is configured), RuntimeUnavailable."""
    if is_for_scoring(resource):
        return here.tokens.for_resource(resource)
    return here.credentials.token, KEPT_S


def _is_known(request: Request, here: Services) -> bool:
    """By the identity header; without one, by the server's token, which is what ``ml`` has."""
    header = request.headers.get("x-identity-header")
    if header is not None:
        return same(header, here.credentials.identity_header)
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    return scheme.lower() == "bearer" and same(given.strip(), here.credentials.token)
