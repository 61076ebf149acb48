"""How a failure becomes an answer: ``{"error": {"code", "message", ...}}``, or Azure Storage's XML.

Decides status, body and headers of every answer that is no success. Clients of Azure Storage ask for XML; with it they
get that service's codes. Must not know which route failed.
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


#: Our codes in Azure Storage's words, where that service has another one.
_STORAGE: Mapping[str, str] = {
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
#: All methods that a route may have; what else a request may call itself is offered nowhere.
_METHODS = ("GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS")


def response(error: Error, scope: Scope) -> Response:
    """``scope``: the request's. ``x-ms-error-code`` is what blob clients look at."""
    xml = scope["path"].startswith(_STORAGE_PREFIX) and "xml" in Headers(scope=scope).get("accept", "")
    code = _STORAGE.get(error.code, error.code) if xml else error.code
    headers = {"x-ms-error-code": code}
    if error.code == "AuthenticationFailed":
        # A challenge without claims: a client with another token may try again, and none goes looking for a login page.
        headers["WWW-Authenticate"] = "Bearer"
    if scope["method"] == "HEAD":
        return Response(status_code=error.status, headers=headers)
    if xml:
        message = error.message if error.hint is None else f"{error.message}; {error.hint}"
        body = storage_xml.refusal(code, message)
        return Response(body, error.status, headers, media_type="application/xml")
    return JSONResponse({"error": error.to_body()}, status_code=error.status, headers=headers)


def unexpected(exc: Exception, request_id: str) -> Error:
    """A fault of ours: the traceback goes to the log, the request's id to both."""
    log.error("a request failed unexpectedly", exc_info=exc, extra={"fields": {"request_id": request_id}})
    message = f"this is a fault of the control plane; its log has the details under request {request_id}"
    return Error("InternalServerError", message, hint="ml server logs")


def on_error(request: Request, exc: Exception) -> Response:
    """Handler of ``Error``."""
    assert isinstance(exc, Error)
    return response(exc, request.scope)


def on_http_exception(request: Request, exc: Exception) -> Response:
    """Handler of what the framework refuses before a route runs: no such path, no such method."""
    assert isinstance(exc, HTTPException)
    path = request.url.path
    if exc.status_code == 404:
        error = Error("ResourceNotFound", f"there is nothing at {path}", target=path)
    elif exc.status_code == 405:
        error = Error("MethodNotAllowed", f"{request.method} is not offered at {path}", target=path)
    else:
        error = Error("BadArgument", str(exc.detail), target=path)
    answer = response(error, request.scope)
    answer.headers.update(exc.headers or {})
    if exc.status_code == 405:
        answer.headers["Allow"] = ", ".join(_offered(request))
    return answer


def _offered(request: Request) -> list[str]:
    """Methods of all routes of this path; the framework names those of the first one alone."""
    scopes = {method: {**request.scope, "method": method} for method in _METHODS}
    routes = request.app.routes
    return [name for name in _METHODS if any(route.matches(scopes[name])[0] is Match.FULL for route in routes)]


def on_invalid_request(request: Request, exc: Exception) -> Response:
    """Handler of parameters that are not of the type that a route declares."""
    assert isinstance(exc, RequestValidationError)
    violations = [Violation(tuple(found["loc"]), str(found["msg"])) for found in exc.errors()]
    error = Error("BadArgument", str(violations[0]), target=request.url.path, violations=violations)
    return response(error, request.scope)
