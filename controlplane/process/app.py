"""The ASGI app of the control plane.

Decides which routes and which middleware it has. Must not know what a route does, or how the
services are constructed.
"""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from amphitrite.controlplane.api import openapi
from amphitrite.controlplane.api.agents import model_downloads, routing_tables, sample_flushes
from amphitrite.controlplane.api.azure import (
    cloud_metadata,
    codes,
    computes,
    deployments,
    endpoints,
    environments,
    histories,
    managed_identity,
    metrics_routes,
    models,
    operations,
    scoring_documents,
    token_authority,
    unsupported_paths,
    workspace,
)
from amphitrite.controlplane.api.delivery import rollouts
from amphitrite.controlplane.api.http import error_responses, health_checks
from amphitrite.controlplane.api.http.middleware import Gate, Paths, Requests
from amphitrite.controlplane.api.maintenance import storage_routes
from amphitrite.controlplane.api.monitor import autoscale_routes
from amphitrite.controlplane.api.storage import blobs, code_uploads
from amphitrite.controlplane.services.services import Services
from amphitrite.schemas.errors import Error

__all__ = ["Services", "create_app"]

#: In the order in which routes are matched.
_MODULES = (
    *(
        health_checks,
        managed_identity,
        cloud_metadata,
        routing_tables,
        sample_flushes,
        operations,
        workspace,
        computes,
        endpoints,
        deployments,
        histories,
        rollouts,
        models,
        scoring_documents,
    ),
    # The token authority is last, because its paths begin with a parameter. code_uploads is before
    # blobs.
    *(environments, codes, code_uploads, blobs, model_downloads, token_authority),
    *(metrics_routes, autoscale_routes, storage_routes, openapi, unsupported_paths),
)


def create_app(services: Services) -> FastAPI:
    """The ASGI app. It serves no documentation page, and no schema without a token."""
    # Routes are passed directly. include_router would add a router for each module to each request.
    routes = [route for module in _MODULES for route in module.router.routes]
    app = FastAPI(
        title="Amphitrite", routes=routes, openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False
    )
    app.state.services = services
    app.add_exception_handler(Error, error_responses.on_error)
    app.add_exception_handler(HTTPException, error_responses.on_http_exception)
    app.add_exception_handler(RequestValidationError, error_responses.on_invalid_request)
    # The last middleware added is the outermost.
    app.add_middleware(Paths)
    app.add_middleware(Gate, credentials=services.credentials)
    app.add_middleware(Requests)
    return app
