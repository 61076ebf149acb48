"""Who is let in, what each request leaves in the log, and the two health routes."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import httpx
import pytest

from amphitrite.controlplane.process.app import create_app

WS = "/subscriptions/local/resourceGroups/local/providers/Microsoft.MachineLearningServices/workspaces/local"
TABLE = "/dataplane/v1/routing-table"
CLOSED = [
    *(WS, f"{WS}/onlineEndpoints", f"{WS}/onlineEndpoints/ep1/listKeys", "/storage/local/azureml-blobstore/a"),
    *(TABLE, "/dataplane/v1/agents", "/docs", "/nothing", "/metrics"),
]
SHOWN = [
    *(None, "", "Bearer", "Bearer x", "Bearer\t{token}", "Bearer {token:.20}", "Bearer {token}x", "Basic {token}"),
    *("{token}", "Bearer é"),
]


@pytest.mark.parametrize("path", CLOSED)
@pytest.mark.parametrize("authorization", SHOWN)
def test_nothing_is_open_without_a_token(unchanged: Any, path: str, authorization: str | None) -> None:
    token = unchanged.services.credentials.token.reveal()
    header = b"" if authorization is None else authorization.format(token=token).encode("latin-1")
    answer = unchanged.client.get(path, headers=httpx.Headers([(b"authorization", header)]))
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert answer.json()["error"]["code"] == "AuthenticationFailed"


@pytest.mark.parametrize(("path", "status"), [(TABLE, 204), (WS, 401), ("/storage/local/azureml-blobstore/a", 401)])
def test_the_agents_token_opens_only_the_data_planes_routes(world: Any, path: str, status: int) -> None:
    token = world.services.credentials.agent_token.reveal()
    assert world.client.get(path, headers={"Authorization": f"Bearer {token}"}).status_code == status


def test_health_is_open_and_says_nothing_else(world: Any) -> None:
    nobody = {"Authorization": ""}
    assert world.client.get("/healthz", headers=nobody).json() == {"status": "ok", "role": "leader"}
    assert world.client.get("/readyz", headers=nobody).json() == {"status": "ready"}


@pytest.mark.parametrize(
    ("last", "words"), [(None, "has not finished its first pass"), (1_800_000_000.0 - 61, "61 s ago")]
)
def test_not_ready_while_the_reconciler_stands_still(world: Any, last: float | None, words: str) -> None:
    world.client._transport._app = httpx.ASGITransport(create_app(replace(world.services, last_pass=lambda: last)))
    answer = world.client.get("/readyz")
    assert (answer.status_code, words in answer.json()["error"]["message"]) == (503, True)


def test_the_identity_endpoint_trades_its_header_for_the_token(world: Any) -> None:
    known = {"X-IDENTITY-HEADER": world.services.credentials.identity_header.reveal(), "Authorization": ""}
    answer = world.client.get("/identity/token?resource=https://management.azure.com/", headers=known)
    assert answer.json() == {
        "access_token": world.services.credentials.token.reveal(),
        "expires_on": str(1_800_000_000 + 24 * 3600),
        "resource": "https://management.azure.com/",
        "token_type": "Bearer",
    }
    assert world.client.get("/identity/token", headers=known).status_code == 400
    assert world.client.get("/identity/token?resource=r", headers={"X-IDENTITY-HEADER": "x"}).status_code == 401
    assert world.client.get("/identity/token?resource=r", headers={"Authorization": ""}).status_code == 401
    assert world.client.get("/identity/token?resource=r", headers={"Authorization": "Bearer x"}).status_code == 401
    # ``ml`` has the token, and asks for one to score with.
    assert world.client.get("/identity/token?resource=r").status_code == 200


def test_each_request_has_one_line_without_secrets(world: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    sent = {"x-ms-client-request-id": "mine"}
    answer = world.client.get(f"{WS}/onlineEndpoints/none?sig=hidden", headers=sent)
    lines = [record for record in caplog.records if record.name == "amphitrite.controlplane.request"]
    assert len(lines) == 1
    fields = vars(lines[0])["fields"]
    assert fields.pop("ms") >= 0
    assert fields == {
        "method": "GET",
        "path": f"{WS}/onlineEndpoints/none",
        "status": 404,
        "request_id": answer.headers["x-request-id"],
        "client_request_id": "mine",
    }
    assert answer.headers["x-ms-client-request-id"] == "mine"
    text = " ".join(str(vars(record)) for record in caplog.records if record.name.startswith("amphitrite"))
    assert world.services.credentials.token.reveal() not in text
    assert "hidden" not in text


@pytest.mark.parametrize(
    ("method", "path", "level"),
    [
        ("GET", "/readyz", "DEBUG"),
        ("GET", "/metrics", "DEBUG"),
        ("GET", "/dataplane/v1/agents", "DEBUG"),
        ("GET", f"{WS}/onlineEndpoints", "DEBUG"),
        ("PUT", f"{WS}/onlineEndpoints/one", "INFO"),
        ("GET", f"{WS}/onlineEndpoints/none", "INFO"),
        ("GET", "/identity/token?resource=r", "INFO"),
    ],
)
def test_what_only_reads_is_not_logged_by_default(
    world: Any, caplog: pytest.LogCaptureFixture, method: str, path: str, level: str
) -> None:
    caplog.set_level(logging.DEBUG)
    body = {"location": "local", "properties": {"authMode": "Key"}} if method == "PUT" else None
    world.client.request(method, path, json=body)
    lines = [record for record in caplog.records if record.name == "amphitrite.controlplane.request"]
    assert [line.levelname for line in lines] == [level]


@pytest.mark.parametrize("sent", ["x" * 129, "a\tb"])
def test_a_client_request_id_that_could_spoil_the_log_is_not_kept(world: Any, sent: str) -> None:
    answer = world.client.get("/healthz", headers={"x-ms-client-request-id": sent})
    assert "x-ms-client-request-id" not in answer.headers
