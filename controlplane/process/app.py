"""The control plane's HTTP side, put together.

Decides which routes there are and what surrounds them all. Must not know what a route does, nor how the services came
to be.
"""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from amphitrite.controlplane.api import openapi
from amphitrite.controlplane.api.agents import model_downloads, routing_tables
from amphitrite.controlplane.api.azure import (
    cloud_metadata,
    codes,
    computes,
    deployments,
    endpoints,
    environments,
    managed_identity,
    metrics_routes,
    models,
    operations,
    token_authority,
    unsupported_paths,
    workspace,
)
from amphitrite.controlplane.api.http import error_responses, health_checks
from amphitrite.controlplane.api.http.middleware import Gate, Paths, Requests
from amphitrite.controlplane.api.storage import blobs, code_uploads
from amphitrite.controlplane.services.services import Services
from amphitrite.schemas.errors import Error

__all__ = ["Services", "create_app"]

#: In the order in which a request looks for its route.
_MODULES = (
    *(
        health_checks,
        managed_identity,
        cloud_metadata,
        routing_tables,
        operations,
        workspace,
        computes,
        endpoints,
        deployments,
        models,
    ),
    # Authority last: its paths begin with a word of the client's. Uploads of code before other blobs.
    *(environments, codes, code_uploads, blobs, model_downloads, token_authority),
    *(metrics_routes, openapi, unsupported_paths),
)


def create_app(services: Services) -> FastAPI:
    """The ASGI app. There is no page of documentation and no schema to be read without a token."""
    # The routes as they are: each request would go through a router of its own for each module that is included.
    routes = [route for module in _MODULES for route in module.router.routes]
    app = FastAPI(
        title="Amphitrite", routes=routes, openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False
    )
    app.state.services = services
    app.add_exception_handler(Error, error_responses.on_error)
    app.add_exception_handler(HTTPException, error_responses.on_http_exception)
    app.add_exception_handler(RequestValidationError, error_responses.on_invalid_request)
    # The last one added is the outermost.
    app.add_middleware(Paths)
    app.add_middleware(Gate, credentials=services.credentials)
    app.add_middleware(Requests)
    return app
