"""Error responses: ``{"error": {"code", "message", ...}}``, or Azure Storage's XML.

Decides status, body and headers of every error. Clients of Azure Storage request XML, and then get
that service's error codes. Must not know which route failed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Match
from starlette.types import Scope

from amphitrite.controlplane.api.http import storage_xml
from amphitrite.schemas.errors import Error, Violation

log = logging.getLogger(__name__)


#: Error code -> the code of Azure Storage, where that differs.
STORAGE_CODES: Mapping[str, str] = {
    "BadArgument": "InvalidInput",
    "Unsupported": "FeatureNotSupported",
    "ResourceNotFound": "ContainerNotFound",
    "MethodNotAllowed": "UnsupportedHttpVerb",
    "PreconditionFailed": "ConditionNotMet",
    "RequestTooLarge": "RequestBodyTooLarge",
    "LimitExceeded": "OutOfRangeInput",
    "InternalServerError": "InternalError",
    "RuntimeUnavailable": "ServerBusy",
}
_STORAGE_PREFIX = "/storage/"
#: All methods that a route may have; any other is refused everywhere.
_METHODS = ("GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS")


def response(error: Error, scope: Scope) -> Response:
    """The response for an error. ``scope``: the request's. Azure's blob clients read
    ``x-ms-error-code``."""
    xml = scope["path"].startswith(_STORAGE_PREFIX) and "xml" in Headers(scope=scope).get("accept", "")
    code = STORAGE_CODES.get(error.code, error.code) if xml else error.code
    headers = {"x-ms-error-code": code}
    if error.code == "AuthenticationFailed":
        # A challenge without claims: a client may retry with another token, but must not look for a
        # login page.
        headers["WWW-Authenticate"] = "Bearer"
    if scope["method"] == "HEAD":
        return Response(status_code=error.status, headers=headers)
    if xml:
        message = error.message if error.hint is None else f"{error.message}; {error.hint}"
        body = storage_xml.refusal(code, message)
        return Response(body, error.status, headers, media_type="application/xml")
    return JSONResponse({"error": error.to_body()}, status_code=error.status, headers=headers)


def unexpected(exc: Exception, request_id: str) -> Error:
    """The error for an unexpected exception. The log has the traceback; both have the
    request's id."""
    log.error("a request failed with an unexpected error", exc_info=exc, extra={"fields": {"request_id": request_id}})
    message = f"the control plane failed unexpectedly; its log has the details for request {request_id}"
    return Error("InternalServerError", message, hint="see `ml server logs`")


def on_error(request: Request, exc: Exception) -> Response:
    """Handles ``Error``."""
    assert isinstance(exc, Error)
    return response(exc, request.scope)


def on_http_exception(request: Request, exc: Exception) -> Response:
    """Handles requests that the framework refuses before a route runs: unknown paths and
    methods."""
    assert isinstance(exc, HTTPException)
    path = request.url.path
    if exc.status_code == 404:
        error = Error("ResourceNotFound", f"the path {path} does not exist", target=path)
    elif exc.status_code == 405:
        error = Error("MethodNotAllowed", f"the method {request.method} is not allowed for {path}", target=path)
    else:
        error = Error("BadArgument", str(exc.detail), target=path)
    answer = response(error, request.scope)
    answer.headers.update(exc.headers or {})
    if exc.status_code == 405:
        answer.headers["Allow"] = ", ".join(_allowed_methods(request))
    return answer


def _allowed_methods(request: Request) -> list[str]:
    """The methods of all routes of this path. The framework only lists those of the first route."""
    scopes = {method: {**request.scope, "method": method} for method in _METHODS}
    routes = request.app.routes
    return [name for name in _METHODS if any(route.matches(scopes[name])[0] is Match.FULL for route in routes)]


def on_invalid_request(request: Request, exc: Exception) -> Response:
    """Handles parameters that do not have the type that a route declares."""
    assert isinstance(exc, RequestValidationError)
    violations = [Violation(tuple(one["loc"]), str(one["msg"])) for one in exc.errors()]
    error = Error("BadArgument", str(violations[0]), target=request.url.path, violations=violations)
    return response(error, request.scope)
