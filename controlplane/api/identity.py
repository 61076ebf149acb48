"""A managed identity for stock Azure credentials: the control plane's token for whoever knows the identity header.

Decides the answer of App Service's identity endpoint (api-version 2019-08-01), which ``DefaultAzureCredential`` asks
when ``IDENTITY_ENDPOINT`` and ``IDENTITY_HEADER`` are set. Must not know what the token opens.
"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request

from amphitrite.controlplane.api.middleware import same
from amphitrite.controlplane.api.services import Here
from amphitrite.schemas.errors import Error

#: The token does not end; a client that keeps it longer than this asks again.
KEPT_S = 24 * 3600

router = APIRouter()


@router.get("/identity/token")
def token(request: Request, here: Here, resource: str = "") -> dict[str, str]:
    """``resource`` is echoed: one token opens whatever this server has."""
    if not same(request.headers.get("x-identity-header", ""), here.credentials.identity_header):
        message = "the header X-IDENTITY-HEADER is missing or is not this server's"
        raise Error("AuthenticationFailed", message, hint='eval "$(ml server env)" sets IDENTITY_HEADER')
    if not resource:
        raise Error("BadArgument", "the parameter resource is missing", target="resource")
    return {
        "access_token": here.credentials.token.reveal(),
        "expires_on": str(int(here.clock()) + KEPT_S),
        "resource": resource,
        "token_type": "Bearer",
    }
