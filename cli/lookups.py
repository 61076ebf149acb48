"""What verbs read of endpoints and deployments.

Decides addresses and which requests a view takes. Must not change anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amphitrite.schemas.names import deployment_id, endpoint_id
from amphitrite.schemas.shown import show_deployment, show_endpoint

if TYPE_CHECKING:
    from amphitrite.cli.client import Client


def endpoint_path(client: Client, name: str) -> str:
    return endpoint_id(client.workspace, name)


def deployment_path(client: Client, endpoint: str, name: str) -> str:
    return deployment_id(client.workspace, endpoint, name)


def endpoint(client: Client, name: str) -> dict[str, Any]:
    """An endpoint as ``show`` prints it: deployments without traffic appear with 0."""
    path = endpoint_path(client, name)
    return show_endpoint(client.get(path), client.pages(f"{path}/deployments"))


def deployment(client: Client, endpoint: str, name: str) -> dict[str, Any]:
    """A deployment as ``show`` prints it."""
    return show_deployment(client.get(deployment_path(client, endpoint, name)))


def credentials(client: Client, name: str) -> dict[str, Any]:
    """``primaryKey`` and ``secondaryKey`` in auth mode key, else ``accessToken`` with its times."""
    path = endpoint_path(client, name)
    is_key = client.get(path)["properties"]["authMode"].lower() == "key"
    body: dict[str, Any] = client.send("POST", f"{path}/{'listKeys' if is_key else 'token'}").json()
    return body
