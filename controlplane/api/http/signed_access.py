"""Requests for blobs that carry a signature in place of a token.

Decides which they are, and that every route of a container looks at the signature when there is one. Must not know how
it is made.
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


def judges(path: str, query: bytes) -> bool:
    """Whether :func:`require` lets this request in, and not the gate."""
    return _SIGNATURE in query and _CONTAINER.fullmatch(path) is not None


def require(request: Request, container: str, here: Services, *, readers: str | None = None) -> None:
    """Without a signature the gate has seen a token of ours. ``readers``: a container whose signature is enough to read
    from this one. Raises Error AuthenticationFailed, AuthorizationFailed."""
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
