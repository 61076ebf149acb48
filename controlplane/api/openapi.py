"""The OpenAPI document of this server, and the route that serves it.

Decides how the routes of the app and the table of operations become one document: which paths, methods and parameters
there are is the routes' to say. Must not know shapes. Routes that only say what is not offered
have no place in it (``include_in_schema``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from amphitrite.controlplane.api import openapi_answers, openapi_bodies, openapi_replies
from amphitrite.controlplane.api.openapi_operation import Answer, Operation
from amphitrite.controlplane.api.openapi_operations import OPERATIONS
from amphitrite.controlplane.api.openapi_shapes import ref
from amphitrite.controlplane.settings.version import VERSION
from amphitrite.schemas.errors import CODES

router = APIRouter()

_SCHEMES = {
    "token": {"type": "http", "scheme": "bearer", "description": "The token of `ml server env`."},
    "agent": {"type": "http", "scheme": "bearer", "description": "The agents' token, or the other one."},
    "grant": {"type": "http", "scheme": "bearer", "description": "A pod's grant for one model version."},
    "identity": {"type": "apiKey", "in": "header", "name": "X-IDENTITY-HEADER"},
}
_DESCRIPTION = (
    "Azure Resource Manager's paths for models and online endpoints, the part of Azure Storage's that models are "
    "uploaded by, and what agents and pods ask for. Any `api-version` is accepted."
)
_PART = re.compile(r"{([a-z_]+)}")
_BINARY = {"type": "string", "format": "binary"}


@router.get("/openapi.json")
def show(request: Request) -> Response:
    """The document; asked for with a token as everything else."""
    return JSONResponse(document(request.app))


@cache
def document(app: FastAPI) -> dict[str, Any]:
    """The document. Raises KeyError for a route that the table of operations does not have."""
    found = get_openapi(title="Amphitrite", version=VERSION, description=_DESCRIPTION, routes=app.routes)
    paths: dict[str, dict[str, Any]] = {}
    for path, methods in found["paths"].items():
        for method, route in methods.items():
            operation = OPERATIONS[f"{method.upper()} {path}"]
            paths.setdefault(path, {})[method] = _operation(operation, route, path, method)
    schemas = {**openapi_bodies.components(), **openapi_replies.components(), **openapi_answers.components()}
    return {
        "openapi": "3.1.0",
        "info": found["info"],
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": _SCHEMES},
    }


def _operation(operation: Operation, route: Mapping[str, Any], path: str, method: str) -> dict[str, Any]:
    bodiless = method == "head"
    declared = route.get("parameters", [])
    # A route need not look at every part of its path.
    unseen = set(_PART.findall(path)) - {one["name"] for one in declared if one["in"] == "path"}
    parts = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in sorted(unseen)]
    made: dict[str, Any] = {
        "operationId": route["operationId"],
        "summary": operation.summary,
        "parameters": [*(_parameter(one, operation) for one in [*declared, *parts]), *operation.headers],
        "responses": {
            **{str(status): _answer(answer) for status, answer in operation.answers.items()},
            **_refusals(operation, bodiless=bodiless),
        },
        "security": [{operation.security: []}] if operation.security else [],
    }
    if operation.body:
        schema = _BINARY if operation.body == "Binary" else ref(operation.body)
        content = {operation.body_media: {"schema": schema}}
        made["requestBody"] = {"required": operation.body_required, "content": content}
    return made


def _parameter(parameter: Mapping[str, Any], operation: Operation) -> dict[str, Any]:
    name = parameter["name"]
    found = {word: value for word, value in parameter["schema"].items() if word != "title"}
    required = {"required": True} if name in operation.required else {}
    return {**parameter, **required, "schema": dict(operation.parameters.get(name, found))}


def _answer(answer: Answer) -> dict[str, Any]:
    made: dict[str, Any] = {"description": answer.description, "headers": _headers(*answer.headers)}
    if answer.schema == "Binary":
        made["content"] = {"*/*": {"schema": _BINARY}}
    elif answer.schema:
        made["content"] = {answer.media: {"schema": ref(answer.schema)}}
    return made


def _refusals(operation: Operation, *, bodiless: bool) -> dict[str, Any]:
    codes: dict[str, list[str]] = {}
    for code in operation.errors:
        codes.setdefault(str(CODES[code]), []).append(code)
    refusals = {status: _refusal(", ".join(found), operation, bodiless) for status, found in codes.items()}
    return {**refusals, "5XX": _refusal("The server's fault, or something that it needs.", operation, bodiless)}


def _refusal(description: str, operation: Operation, bodiless: bool) -> dict[str, Any]:
    named = ("x-ms-error-code",) if operation.refusal == "Error" else ()
    made: dict[str, Any] = {"description": description, "headers": _headers(*named)}
    if not bodiless:
        made["content"] = {"application/json": {"schema": ref(operation.refusal)}}
        if operation.xml:
            made["content"]["application/xml"] = {"schema": ref("StorageError")}
    return made


def _headers(*names: str) -> dict[str, Any]:
    return {name: {"required": True, "schema": {"type": "string"}} for name in (*names, "x-request-id")}
