"""Middleware: what happens to every request before and after its route.

Decides request ids, the log line of each request, authentication, and that keywords in paths ignore
case. Must not know any route. Plain ASGI, so that streamed bodies are not buffered.
"""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Mapping
from secrets import compare_digest

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from amphitrite.controlplane.api.http import error_responses, signed_access
from amphitrite.controlplane.api.http.arm_paths import canonical
from amphitrite.controlplane.auth.credentials import Credentials
from amphitrite.dataplane.table.routing_table import Secret
from amphitrite.schemas.errors import Error

log = logging.getLogger("amphitrite.controlplane.request")

#: Paths without authentication. The identity endpoint checks its own header; the metadata contain
#: only the URL that was requested.
PUBLIC_PATHS = frozenset({"/healthz", "/readyz", "/identity/token", "/metadata/endpoints"})
#: Clients request tokens here, below a tenant of their choice. The routes check the credentials.
AUTHORITY = re.compile(r"/[^/]+(/v2\.0/\.well-known/openid-configuration|/oauth2/v2\.0/token)")
#: The description of a scoring address, for whoever may score. The route checks keys and tokens.
DESCRIPTION = re.compile(r"/endpoints/[^/]+/swagger\.json")
AGENT_PREFIX = "/dataplane/"
#: Pods have no token: these routes check grants and signatures themselves.
FETCH_PREFIX = "/fetch/"
_CLIENT_ID_LENGTH = 128


class Requests:
    """The outermost layer: request ids on each response, one log line for each request, a response
    for every failure."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = str(uuid.uuid4())
        client_id = _printable(Headers(scope=scope).get("x-ms-client-request-id", ""))
        status = 0
        began = time.perf_counter()

        async def stamped(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["x-request-id"] = request_id
                headers["x-ms-request-id"] = request_id
                headers["Cache-Control"] = "no-store"
                if client_id:
                    headers["x-ms-client-request-id"] = client_id
            await send(message)

        method, path = scope["method"], scope["path"]
        try:
            await self._app(scope, receive, stamped)
        except ClientDisconnect:
            pass
        except Exception as exc:
            error = exc if isinstance(exc, Error) else error_responses.unexpected(exc, request_id)
            # After the response has started no error can be sent, so the connection is closed.
            if status:
                raise ConnectionAbortedError(f"request {request_id} failed during its response") from None
            await error_responses.response(error, scope)(scope, receive, stamped)
        finally:
            fields = {
                "method": method,
                "path": path,
                "status": status,
                "ms": round((time.perf_counter() - began) * 1000, 1),
                "request_id": request_id,
                "client_request_id": client_id or None,
            }
            level = logging.DEBUG if 0 < status < 400 and _only_reads(method, path) else logging.INFO
            log.log(level, "%s %s %s", method, path, status or "client gone", extra={"fields": fields})


def _only_reads(method: str, path: str) -> bool:
    """Whether a request changes nothing and is often repeated: a poll, a probe, an agent's report.

    Who has got a token is logged.
    """
    if path.startswith(AGENT_PREFIX) or path.endswith("/getLogs"):
        return True
    return method in ("GET", "HEAD") and path != "/identity/token"


class Gate:
    """Authenticates requests: the server's token for any path, the agents' below ``/dataplane/``.

    Requests that routes authenticate themselves pass: below ``/fetch/``, and blobs with a
    signature. Raises Error AuthenticationFailed.
    """

    def __init__(self, app: ASGIApp, credentials: Credentials) -> None:
        self._app = app
        self._credentials = credentials

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not _authenticates_itself(scope["path"], scope["query_string"]):
            given = bearer(Headers(scope=scope))
            accepted = given is not None and secrets_equal(given, self._credentials.token)
            if given is not None and scope["path"].startswith(AGENT_PREFIX):
                accepted |= secrets_equal(given, self._credentials.agent_token)
            if not accepted:
                reason = "the token is not valid" if given else "the token is missing"
                raise Error(
                    "AuthenticationFailed",
                    f"the request needs a bearer token in the header Authorization; {reason}",
                    hint='run `eval "$(ml server env)"` to set up a client',
                )
        await self._app(scope, receive, send)


def _authenticates_itself(path: str, query: bytes) -> bool:
    if (
        path in PUBLIC_PATHS
        or path.startswith(FETCH_PREFIX)
        or AUTHORITY.fullmatch(path)
        or DESCRIPTION.fullmatch(path)
    ):
        return True
    return signed_access.has_signature(path, query)


class Paths:
    """Azure Resource Manager's path keywords ignore case; routes have one spelling."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "path": canonical(scope["path"])}
        await self._app(scope, receive, send)


def bearer(headers: Mapping[str, str]) -> str | None:
    """The bearer token of a request; None without one."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else None


def secrets_equal(given: str, secret: Secret) -> bool:
    """Whether ``given`` equals the secret, compared in constant time."""
    return compare_digest(given.encode("utf-8", "surrogateescape"), secret.reveal().encode("utf-8"))


def _printable(text: str) -> str:
    return text if len(text) <= _CLIENT_ID_LENGTH and text.isascii() and text.isprintable() else ""
