"""The OpenAPI document of an endpoint's deployment: the resource's ``swaggerUri``.

Decides the address, and whose credentials are accepted: those that score, and the server's token.
Azure ML serves it at the scoring address. Here the control plane does, which has the models' files;
a proxy has none. Must not know what a document contains.
"""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from amphitrite.controlplane.api.http.dependencies import Here
from amphitrite.controlplane.api.http.middleware import bearer, secrets_equal
from amphitrite.controlplane.core.desired.resources import token_binding
from amphitrite.controlplane.services import scoring_descriptions, scoring_openapi
from amphitrite.controlplane.services.services import Services
from amphitrite.controlplane.store.state.store import Record
from amphitrite.schemas.errors import Error

router = APIRouter()


def address(request: Request, endpoint: str) -> str:
    """The URL of an endpoint's document, with the host that the client used."""
    return f"{str(request.base_url).rstrip('/')}/endpoints/{endpoint}/swagger.json"


@router.get("/endpoints/{name}/swagger.json")
def show(
    request: Request,
    name: str,
    here: Here,
    version: Annotated[Literal["2", "3"], Query()] = "2",
    deployment: Annotated[str | None, Header(alias="azureml-model-deployment")] = None,
) -> Response:
    """The document of the deployment that the header names, else of the one with most traffic.
    ``version``: of Swagger or OpenAPI, as in Azure ML."""
    record = _authorized(request, here, name)
    described = scoring_descriptions.describe(here, record, deployment)
    return JSONResponse(scoring_openapi.document(described, swagger=version == "2"))


def _authorized(request: Request, here: Services, name: str) -> Record:
    """The endpoint. Raises Error AuthenticationFailed, ResourceNotFound."""
    given = bearer(request.headers)
    if given is not None and secrets_equal(given, here.credentials.token):
        return here.store.get_endpoint(name)
    try:
        record = here.store.get_endpoint(name)
        if given is not None and _scores(here, record, given):
            return record
    except Error as error:
        if error.code != "ResourceNotFound":
            raise
    message = f"the request needs a key or token of endpoint '{name}' in the header Authorization"
    raise Error("AuthenticationFailed", message, hint="get one: ml online-endpoint get-credentials")


def _scores(here: Services, endpoint: Record, given: str) -> bool:
    """Whether requests with this key or token are scored."""
    mode, keys = endpoint.document.get("auth_mode", "key"), here.store.get_keys(endpoint.name)
    if mode == "key":
        return any([secrets_equal(given, one) for one in keys])
    return here.tokens.accepts(given, mode, token_binding(endpoint.name, keys))
