"""--local: what is on the control plane's own machine, and what is refused because it is not."""

from __future__ import annotations

import httpx
import pytest

from amphitrite.cli.resources import local_deployments
from amphitrite.cli.session.rest_client import Client
from amphitrite.cli.terminal.options import Scope
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import compute_id, workspace_id

WORKSPACE = workspace_id("s", "g", "w")


def client(*, local_runtime: bool, compute: str | None = None) -> Client:
    """A control plane with one endpoint."""

    def answer(request: httpx.Request) -> httpx.Response:
        if "/computes/" in request.url.path:
            missing = {"error": {"code": "ResourceNotFound", "message": "no"}}
            return httpx.Response(200, json={}) if local_runtime else httpx.Response(404, json=missing)
        return httpx.Response(200, json={"name": "ep-1", "properties": {"compute": compute, "traffic": {"blue": 0}}})

    return Client(httpx.Client(transport=httpx.MockTransport(answer), base_url="https://h"), Scope("s", "g", "w"))


def test_an_endpoint_without_compute_is_local() -> None:
    server = client(local_runtime=True)
    local_deployments.require_endpoint(server, "ep-1")
    local_deployments.require_document(server, {"name": "ep-1"})
    assert not local_deployments.has_traffic(server, "ep-1")


def test_on_a_cluster_nothing_is_local() -> None:
    with pytest.raises(Error, match="runs its instances on a cluster") as caught:
        local_deployments.require_endpoint(client(local_runtime=False), "ep-1")
    assert (caught.value.code, "ml server start --runtime local" in str(caught.value.hint)) == ("Unsupported", True)


def test_an_endpoint_on_an_attached_cluster_is_not_found() -> None:
    server = client(local_runtime=True, compute=compute_id(WORKSPACE, "k8s"))
    with pytest.raises(Error, match="the endpoint with this name runs on compute k8s") as caught:
        local_deployments.require_endpoint(server, "ep-1")
    assert caught.value.code == "ResourceNotFound"
