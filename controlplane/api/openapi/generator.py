"""The OpenAPI document of this server, and the route that serves it.

Decides how routes, the table of operations and the schemas become one document. The routes define
paths, methods and parameters. Routes for unsupported paths are left out (``include_in_schema``).
Must not know any operation or shape.
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

from amphitrite.controlplane.api.openapi import payload_schemas, resource_schemas
from amphitrite.controlplane.api.openapi.operation_table import OPERATIONS, Answer, Operation
from amphitrite.controlplane.api.openapi.payload_schemas import ref
from amphitrite.controlplane.settings.version import VERSION
from amphitrite.schemas.errors import CODES

router = APIRouter()

_SCHEMES = {
    "token": {"type": "http", "scheme": "bearer", "description": "The token of `ml server env`."},
    "agent": {"type": "http", "scheme": "bearer", "description": "The agents' token, or that of `ml server env`."},
    "grant": {"type": "http", "scheme": "bearer", "description": "A pod's grant for one model version."},
    "score": {"type": "http", "scheme": "bearer", "description": "A key or token of the endpoint, or the server's."},
    "identity": {"type": "apiKey", "in": "header", "name": "X-IDENTITY-HEADER"},
}
_DESCRIPTION = (
    "Azure Resource Manager's paths for models and online endpoints, the part of Azure Storage's that models are "
    "uploaded by, and what agents and pods ask for. Any `api-version` is accepted."
)
_CONDITIONS = {"If-Match": {"type": "string"}, "If-None-Match": {"const": "*"}}
_TEXT = {"type": "string"}
_BINARY = {**_TEXT, "format": "binary"}


@router.get("/openapi.json")
def show(request: Request) -> Response:
    """The document. The request needs a token."""
    return JSONResponse(document(request.app))


@cache
def document(app: FastAPI) -> dict[str, Any]:
    """The document. Raises KeyError for a route that is missing in the table of operations."""
    found = get_openapi(title="Amphitrite", version=VERSION, description=_DESCRIPTION, routes=app.routes)
    paths = {
        path: {method: _operation(route, path, method) for method, route in methods.items()}
        for path, methods in found["paths"].items()
    }
    schemas = {**resource_schemas.components(), **payload_schemas.components()}
    components = {"schemas": schemas, "securitySchemes": _SCHEMES}
    return {"openapi": "3.1.0", "info": found["info"], "paths": paths, "components": components}


def _operation(route: Mapping[str, Any], path: str, method: str) -> dict[str, Any]:
    operation = OPERATIONS[f"{method.upper()} {path}"]
    answers = {str(status): _answer(answer) for status, answer in operation.answers.items()}
    made: dict[str, Any] = {
        "operationId": route["operationId"],
        "summary": operation.summary,
        "parameters": _parameters(route.get("parameters", []), path, operation),
        "responses": {**answers, **_refusals(operation, bodiless=method == "head")},
        "security": [{operation.security: []}] if operation.security else [],
    }
    if operation.body:
        content = {operation.body_media: {"schema": _schema(operation.body)}}
        made["requestBody"] = {"required": operation.body_required, "content": content}
    return made


def _parameters(declared: list[dict[str, Any]], path: str, operation: Operation) -> list[dict[str, Any]]:
    # A route may ignore a parameter of its path.
    unseen = sorted(set(re.findall(r"{([a-z_]+)}", path)) - {one["name"] for one in declared if one["in"] == "path"})
    found = [*declared, *({"name": name, "in": "path", "required": True, "schema": _TEXT} for name in unseen)]
    headers = {**operation.headers, **(_CONDITIONS if operation.conditional else {})}
    return [
        *(_parameter(one, operation) for one in found),
        *({"name": name, "in": "header", "required": False, "schema": schema} for name, schema in headers.items()),
    ]


def _parameter(parameter: Mapping[str, Any], operation: Operation) -> dict[str, Any]:
    name = parameter["name"]
    found = {word: value for word, value in parameter["schema"].items() if word != "title"}
    required = {"required": True} if name in operation.required else {}
    return {**parameter, **required, "schema": dict(operation.parameters.get(name, found))}


def _answer(answer: Answer) -> dict[str, Any]:
    media = "*/*" if answer.schema == "Binary" else answer.media
    content = {"content": {media: {"schema": _schema(answer.schema)}}} if answer.schema else {}
    return {"description": answer.description, "headers": _headers(*answer.headers), **content}


def _refusals(operation: Operation, *, bodiless: bool) -> dict[str, Any]:
    codes: dict[str, list[str]] = {}
    for code in operation.errors:
        codes.setdefault(str(CODES[code]), []).append(code)
    descriptions = {status: ", ".join(names) for status, names in codes.items()}
    descriptions["5XX"] = "A fault of the server, or of a service that it needs."
    headers = _headers("x-ms-error-code") if operation.refusal == "Error" else _headers()
    content = {"application/json": {"schema": ref(operation.refusal)}}
    if operation.xml:
        content["application/xml"] = {"schema": ref("StorageError")}
    body = {} if bodiless else {"content": content}
    return {status: {"description": text, "headers": headers, **body} for status, text in descriptions.items()}


def _schema(name: str) -> dict[str, Any]:
    return _BINARY if name == "Binary" else ref(name)


def _headers(*names: str) -> dict[str, Any]:
    return {name: {"required": True, "schema": _TEXT} for name in (*names, "x-request-id")}
