"""The option ``--local`` of Azure ML's scripts.

Decides which endpoints are local: those without a compute, on a control plane whose built-in
compute is ``local``. For these, the option changes nothing. Must not know other options or files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import compute_id, endpoint_id, parse_compute

if TYPE_CHECKING:
    from amphitrite.cli.session.rest_client import Client

Local = Annotated[
    bool, typer.Option("--local", help="Work only on endpoints that run on the control plane's own machine.")
]
#: The location that Azure ML's clients print for a local endpoint.
LOCATION = "local"


def require(client: Client) -> None:
    """Raises Error Unsupported if instances without a compute run on a cluster."""
    if client.find(compute_id(client.workspace, "local")) is None:
        message = "--local: this control plane runs its instances on a cluster"
        hint = "remove --local, or start a control plane with `ml server start --runtime local`"
        raise Error("Unsupported", message, target="--local", hint=hint)


def require_document(client: Client, document: Mapping[str, Any]) -> None:
    """As ``require``, for a new endpoint. Raises Error Unsupported if it has a compute."""
    require(client)
    if document.get("compute"):
        message = f"--local: the document sets a compute, {document['compute']}"
        raise Error("Unsupported", message, target="compute", hint="remove --local or the field compute")


def require_endpoint(client: Client, name: str) -> None:
    """As ``require``, for an existing endpoint.

    Raises Error ResourceNotFound if it runs on a cluster.
    """
    require(client)
    resource = client.get(endpoint_id(client.workspace, name))
    if not is_local(resource):
        where = parse_compute(resource["properties"]["compute"]) or resource["properties"]["compute"]
        message = f"--local: no local endpoint {name}; the endpoint with this name runs on compute {where}"
        raise Error("ResourceNotFound", message, target=name, hint="remove --local")


def is_local(resource: Mapping[str, Any]) -> bool:
    """Whether an endpoint (a wire resource) has no compute."""
    return not resource["properties"].get("compute")


def has_traffic(client: Client, endpoint: str) -> bool:
    """Whether any deployment has traffic.

    With Azure ML, the deployment of a local endpoint gets all of it.
    """
    body = client.get(endpoint_id(client.workspace, endpoint))["properties"]
    return any((body.get("traffic") or {}).values())
