"""How a failure becomes an answer: always ``{"error": {"code", "message", ...}}``.

Decides status, body and headers of every answer that is no success. Must not know which route failed.
"""

from __future__ import annotations

import logging

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from amphitrite.schemas.errors import Error, Violation

log = logging.getLogger(__name__)


def response(error: Error, *, bodiless: bool = False) -> Response:
    """``bodiless``: the request was a HEAD. ``x-ms-error-code`` is what blob clients look at."""
    headers = {"x-ms-error-code": error.code}
    if error.code == "AuthenticationFailed":
        # A challenge without claims: a client with another token may try again, and none goes looking for a login page.
        headers["WWW-Authenticate"] = "Bearer"
    if bodiless:
        return Response(status_code=error.status, headers=headers)
    return JSONResponse({"error": error.to_body()}, status_code=error.status, headers=headers)


def unexpected(exc: Exception, request_id: str) -> Error:
    """A fault of ours: the traceback goes to the log, the request's id to both."""
    log.error("a request failed unexpectedly", exc_info=exc, extra={"fields": {"request_id": request_id}})
    message = f"this is a fault of the control plane; its log has the details under request {request_id}"
    return Error("InternalServerError", message, hint="ml server logs")


def on_error(request: Request, exc: Exception) -> Response:
    """Handler of ``Error``."""
    assert isinstance(exc, Error)
    return response(exc, bodiless=request.method == "HEAD")


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
    answer = response(error, bodiless=request.method == "HEAD")
    answer.headers.update(exc.headers or {})
    return answer


def on_invalid_request(request: Request, exc: Exception) -> Response:
    """Handler of parameters that are not of the type that a route declares."""
    assert isinstance(exc, RequestValidationError)
    violations = [Violation(tuple(found["loc"]), str(found["msg"])) for found in exc.errors()]
    error = Error("BadArgument", str(violations[0]), target=request.url.path, violations=violations)
    return response(error, bodiless=request.method == "HEAD")
