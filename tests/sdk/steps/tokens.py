"""Endpoints that are asked with tokens: ``aml_token`` and ``aad_token``."""

from __future__ import annotations

import time

from azure.ai.ml.entities import Model

from .deployments import answered, deploy, invoke, sums
from .endpoints import create
from .step import Here, step


def name(here: Here, mode: str) -> str:
    return f"{mode}-{here.tag}"


def serve(here: Here, mode: str) -> None:
    made = create(here, name(here, mode), auth_mode=f"{mode}_token")
    assert made.auth_mode == f"{mode}_token"
    deploy(here, "blue", Model(path=str(here.files / "four"), type="triton_model"), name(here, mode))


def delete(here: Here, mode: str) -> None:
    here.client.online_endpoints.begin_delete(name(here, mode))


@step
def aml_token_endpoint(here: Here) -> None:
    serve(here, "aml")


@step
def aml_token_get_keys(here: Here) -> None:
    token = here.client.online_endpoints.get_keys(name(here, "aml"))
    assert token.access_token.count(".") == 2
    assert time.time() < token.refresh_after_time_utc < token.expiry_time_utc
    assert token.token_type == "Bearer"


@step
def aml_token_invoke(here: Here) -> None:
    answer = invoke(here, name(here, "aml"), deployment_name="blue")
    assert answered(answer) == sums(here, "four")
    delete(here, "aml")


@step
def aad_token_endpoint(here: Here) -> None:
    serve(here, "aad")


@step
def aad_token_get_keys(here: Here) -> None:
    """The SDK asks its own credential, not the server."""
    token = here.client.online_endpoints.get_keys(name(here, "aad"))
    assert token.access_token
    assert token.expiry_time_utc > time.time()


@step
def aad_token_invoke(here: Here) -> None:
    answer = invoke(here, name(here, "aad"), deployment_name="blue")
    assert answered(answer) == sums(here, "four")
    delete(here, "aad")
