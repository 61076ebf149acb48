"""``--local`` of Azure ML's scripts: what runs on the control plane's own machine.

Decides what is local: an endpoint that names no compute, on a control plane whose own compute is ``local``. There it is
what the same command without ``--local`` works on. Must not know options or files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import compute_id, endpoint_id, parse_compute

if TYPE_CHECKING:
    from amphitrite.cli.session.rest_client import Client

Local = Annotated[bool, typer.Option("--local", help="Only what runs on the control plane's own machine.")]
#: What Azure ML's clients print of a local endpoint.
LOCATION = "local"


def require(client: Client) -> None:
    """Raises Error Unsupported when instances that name no compute run on a cluster."""
    if client.find(compute_id(client.workspace, "local")) is None:
        message = "--local: this control plane runs its instances on a cluster, not on its own machine"
        hint = "leave --local out, or use another control plane: ml server start --runtime local"
        raise Error("Unsupported", message, target="--local", hint=hint)


def require_document(client: Client, document: Mapping[str, Any]) -> None:
    """As ``require``, for an endpoint that is to be created. Raises Error Unsupported when it names a compute."""
    require(client)
    if document.get("compute"):
        message = f"--local: the document names a compute, {document['compute']}"
        raise Error("Unsupported", message, target="compute", hint="leave --local or compute out")


def require_endpoint(client: Client, name: str) -> None:
    """As ``require``, for an endpoint that is there. Raises Error ResourceNotFound when it runs on a cluster."""
    require(client)
    resource = client.get(endpoint_id(client.workspace, name))
    if not is_local(resource):
        where = parse_compute(resource["properties"]["compute"]) or resource["properties"]["compute"]
        message = f"--local: there is no local endpoint {name}; the endpoint of this name runs on compute {where}"
        raise Error("ResourceNotFound", message, target=name, hint="leave --local out")


def is_local(resource: Mapping[str, Any]) -> bool:
    """Whether an endpoint (a wire resource) names no compute."""
    return not resource["properties"].get("compute")


def has_traffic(client: Client, endpoint: str) -> bool:
    """Whether any deployment has a share; the one of Azure ML's local endpoint gets every request."""
    body = client.get(endpoint_id(client.workspace, endpoint))["properties"]
    return any((body.get("traffic") or {}).values())
