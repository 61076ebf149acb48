"""The other ways in than the plain one: other credentials, and the server described as a cloud.

They change the environment of the process, so nothing else runs beside them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import requests
from azure.ai.ml import MLClient
from azure.ai.ml.entities import Model
from azure.identity import EnvironmentCredential, ManagedIdentityCredential

from .step import Here, Token, newest_step, refused

#: What the plain way has set, and what the SDK itself sets once a client was made.
PLAIN = {"AZUREML_DEV_URL_MFE": None, "AZUREML_CURRENT_CLOUD": None}


@contextmanager
def environment(**values: str | None) -> Iterator[None]:
    """With these variables; None is not set."""
    before = dict(os.environ)
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def works(here: Here, client: MLClient, way: str) -> None:
    """Control plane and files: what each way has to find by itself."""
    assert client.workspaces.get(os.environ["ML_WORKSPACE"]).name == "local"
    file = here.files / f"{way}.bin"
    file.write_text(way)
    assert client.models.create_or_update(Model(name=f"{way}-{here.tag}", version="1", path=str(file))).version == "1"


def cloud() -> dict[str, Any]:
    url = os.environ["AZUREML_DEV_URL_MFE"]
    answer = requests.get(f"{url}/metadata/endpoints", params={"api-version": "2022-09-01"}, timeout=30)
    return dict(answer.json()[0])


@newest_step
def way_in_by_managed_identity(here: Here) -> None:
    works(here, here.new_client(ManagedIdentityCredential()), "identity")


@newest_step
def way_in_by_cloud_discovery(here: Here) -> None:
    url = os.environ["AZUREML_DEV_URL_MFE"]
    asked = f"{url}/metadata/endpoints?api-version=2022-09-01"
    with environment(**PLAIN, ARM_CLOUD_METADATA_URL=asked):
        works(here, here.new_client(), "discovery")


@newest_step
def way_in_by_cloud_metadata(here: Here) -> None:
    found, url = cloud(), os.environ["AZUREML_DEV_URL_MFE"]
    metadata = {
        "azure_portal": found["portal"],
        "resource_manager": found["resourceManager"],
        "active_directory": found["authentication"]["loginEndpoint"],
        "aml_resource_id": found["authentication"]["audiences"][0],
        "storage_endpoint": found["suffixes"]["storage"],
        "registry_discovery_endpoint": url,
    }
    with environment(**PLAIN):
        works(here, here.new_client(cloud=found["name"], cloud_metadata=metadata), "metadata")


@newest_step
def way_in_by_a_clients_secret(here: Here) -> None:
    secret = os.environ["IDENTITY_HEADER"]
    variables = {
        "AZURE_AUTHORITY_HOST": os.environ["AZUREML_DEV_URL_MFE"],
        "AZURE_TENANT_ID": "amphitrite",
        "AZURE_CLIENT_ID": "amphitrite",
        "AZURE_CLIENT_SECRET": secret,
    }
    with environment(IDENTITY_ENDPOINT=None, IDENTITY_HEADER=None, **variables):
        works(here, here.new_client(EnvironmentCredential(disable_instance_discovery=True)), "secret")
    with environment(**{**variables, "AZURE_CLIENT_SECRET": "wrong"}), refused("client_id or client_secret"):
        credential = EnvironmentCredential(disable_instance_discovery=True)
        here.new_client(credential).workspaces.get(os.environ["ML_WORKSPACE"])


@newest_step
def way_in_with_a_wrong_token_is_told(here: Here) -> None:
    with refused("AuthenticationFailed"):
        here.new_client(Token("wrong")).online_endpoints.get("cats")
