"""Reads endpoints, deployments and their credentials.

Decides the paths of resources and which requests a view needs. Must not change anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amphitrite.cli.session import near_names
from amphitrite.schemas.names import deployment_id, endpoint_id
from amphitrite.schemas.wire.display import show_deployment, show_endpoint

if TYPE_CHECKING:
    from amphitrite.cli.session.near_names import Place
    from amphitrite.cli.session.rest_client import Client

#: The resource of the token with which Azure's tools call endpoints of auth mode aad_token.
SCORING_RESOURCE = "https://ml.azure.com"


def endpoint_path(client: Client, name: str) -> str:
    """The path of an endpoint in the REST API: its ARM id."""
    return endpoint_id(client.workspace, name)


def deployment_path(client: Client, endpoint: str, name: str) -> str:
    """The path of a deployment in the REST API: its ARM id."""
    return deployment_id(client.workspace, endpoint, name)


def endpoint_places(client: Client, name: str) -> list[Place]:
    """Where to look for the name that was meant by the name of an endpoint."""
    return [(name, f"{client.workspace}/onlineEndpoints")]


def deployment_places(client: Client, endpoint: str, name: str) -> list[Place]:
    """Where to look for the names that were meant by those of an endpoint and its deployment."""
    return [*endpoint_places(client, endpoint), (name, f"{endpoint_path(client, endpoint)}/deployments")]


def endpoint(client: Client, name: str) -> dict[str, Any]:
    """An endpoint as ``show`` prints it, with 0 for deployments without traffic."""
    path = endpoint_path(client, name)
    with near_names.suggested(client, *endpoint_places(client, name)):
        return show_endpoint(client.get(path), client.list_all(f"{path}/deployments"))


def deployment(client: Client, endpoint: str, name: str) -> dict[str, Any]:
    """A deployment as ``show`` prints it."""
    with near_names.suggested(client, *deployment_places(client, endpoint, name)):
        return show_deployment(client.get(deployment_path(client, endpoint, name)))


def credentials(client: Client, name: str) -> dict[str, Any]:
    """The credentials for scoring requests.

    Auth mode key: ``primaryKey`` and ``secondaryKey``. aml_token: ``accessToken`` and its times.
    aad_token: ``accessToken`` of this server's identity, unless ``ML_SCORING_ISSUER`` sets another
    issuer.
    """
    path = endpoint_path(client, name)
    with near_names.suggested(client, *endpoint_places(client, name)):
        mode = client.get(path)["properties"]["authMode"].lower()
    if mode == "aadtoken":
        token = client.send("GET", "/identity/token", params={"resource": SCORING_RESOURCE}).json()
        return {"accessToken": token["access_token"], "expiryTimeUtc": int(token["expires_on"])}
    body: dict[str, Any] = client.send("POST", f"{path}/{'listKeys' if mode == 'key' else 'token'}").json()
    return body
