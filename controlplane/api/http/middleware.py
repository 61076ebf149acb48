"""What happens to every request before and after its route.

Decides request ids, the one log line, who is let in, and that fixed path segments are read without case. Must not know
any route. Plain ASGI, so that a streamed body is never held back.
"""

from __future__ import annotations

import logging
import re
import time
import uuid
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

#: Open to everybody. The identity endpoint asks for a header of its own; metadata says nothing that is not in the
#: address that it was asked at.
OPEN = frozenset({"/healthz", "/readyz", "/identity/token", "/metadata/endpoints"})
#: Clients come here for a token: below a tenant, whose name they choose. The routes look at what they present.
AUTHORITY = re.compile(r"/[^/]+(/v2\.0/\.well-known/openid-configuration|/oauth2/v2\.0/token)")
PROBED = frozenset({"/healthz", "/readyz"})
AGENT_PREFIX = "/dataplane/"
#: Pods come here without a token of ours: these routes look at grants and signatures themselves.
FETCH_PREFIX = "/fetch/"
_CLIENT_ID_LENGTH = 128


class Requests:
    """The outermost layer: ids on each answer, one log line for each request, an answer for every failure."""

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
            # Once a body is under way nothing true can be said any more: the connection breaks off.
            if status:
                raise ConnectionAbortedError(f"request {request_id} failed half-way") from None
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
            # Agents and probes ask every few seconds, day and night; an answer is worth a line when it is a refusal.
            routine = (path.startswith(AGENT_PREFIX) or path in PROBED) and 0 < status < 400
            level = logging.DEBUG if routine else logging.INFO
            log.log(level, "%s %s %s", method, path, status or "client gone", extra={"fields": fields})


class Gate:
    """Lets in who presents a token: ours anywhere, the agents' below ``/dataplane/``. Whatever has credentials of
    its own passes: what is below ``/fetch/``, and blobs with a signature. Raises AuthenticationFailed."""

    def __init__(self, app: ASGIApp, credentials: Credentials) -> None:
        self._app = app
        self._credentials = credentials

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not _has_its_own(scope["path"], scope["query_string"]):
            scheme, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
            accepted = same(given.strip(), self._credentials.token)
            if scope["path"].startswith(AGENT_PREFIX):
                accepted |= same(given.strip(), self._credentials.agent_token)
            if scheme.lower() != "bearer" or not accepted:
                found = "it is not accepted here" if given else "there is none"
                raise Error(
                    "AuthenticationFailed",
                    f"a bearer token in the header Authorization is needed; {found}",
                    hint='eval "$(ml server env)" gives a client what it needs',
                )
        await self._app(scope, receive, send)


def _has_its_own(path: str, query: bytes) -> bool:
    if path in OPEN or path.startswith(FETCH_PREFIX) or AUTHORITY.fullmatch(path):
        return True
    return signed_access.judges(path, query)


class Paths:
    """Azure Resource Manager's path segments are equal without case; routes know one spelling."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "path": canonical(scope["path"])}
        await self._app(scope, receive, send)


def same(given: str, secret: Secret) -> bool:
    """Whether ``given`` is the secret, in a time that does not tell how much of it is."""
    return compare_digest(given.encode("utf-8", "surrogateescape"), secret.reveal().encode("utf-8"))


def _printable(text: str) -> str:
    return text if len(text) <= _CLIENT_ID_LENGTH and text.isascii() and text.isprintable() else ""
