"""Blob requests with a signature instead of a token.

Decides which requests these are, and that every route of a container checks the signature. Must not
know how signatures are created.
"""

from __future__ import annotations

import re

from starlette.requests import Request

from amphitrite.controlplane.auth.shared_access_signatures import ContainerSignatures
from amphitrite.controlplane.services.services import Services
from amphitrite.schemas.errors import Error

_SIGNATURE = b"sig="
#: Paths whose routes all call :func:`require`.
_CONTAINER = re.compile(r"/storage/[^/]+/[^/]+(/.*)?", re.DOTALL)


def has_signature(path: str, query: bytes) -> bool:
    """Whether :func:`require` authenticates this request instead of the middleware."""
    return _SIGNATURE in query and _CONTAINER.fullmatch(path) is not None


def require(request: Request, container: str, here: Services, *, readers: str | None = None) -> None:
    """Checks the signature of a request. Without one the middleware has checked a token.

    ``readers``: a container whose signature also allows reading from this one. Raises Error
    AuthenticationFailed or AuthorizationFailed.
    """
    if _SIGNATURE not in request.scope["query_string"]:
        return
    try:
        signatures(here).check(container, request.query_params)
    except Error as error:
        if readers is None or request.method not in ("GET", "HEAD") or error.code != "AuthenticationFailed":
            raise
        signatures(here).check(readers, request.query_params)


def signatures(here: Services) -> ContainerSignatures:
    return ContainerSignatures(here.credentials.fetch_key, here.clock)
