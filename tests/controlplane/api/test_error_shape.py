"""Every refusal, whoever utters it, is ``{"error": {"code", "message", ...}}`` with the status of
its code."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import Any

import httpx
import pytest

from amphitrite.controlplane.process.app import create_app
from amphitrite.schemas.errors import CODES

WS = "/subscriptions/local/resourceGroups/local/providers/Microsoft.MachineLearningServices/workspaces/local"
EP = f"{WS}/onlineEndpoints/ep1"
BLUE = f"{EP}/deployments/blue"
BLOB = "/storage/local/azureml-blobstore/a"

#: (method, path, body, code). A body that is bytes is sent as it is.
REFUSED: list[tuple[str, str, Any, str]] = [
    ("GET", "/nothing", None, "ResourceNotFound"),
    ("GET", "/docs", None, "ResourceNotFound"),
    ("POST", "/healthz", None, "MethodNotAllowed"),
    ("PATCH", EP, {}, "MethodNotAllowed"),
    ("DELETE", BLOB, None, "MethodNotAllowed"),
    ("GET", WS.replace("subscriptions/local", "subscriptions/other"), None, "ResourceNotFound"),
    ("GET", f"{WS}/environments/e/versions/1", None, "ResourceNotFound"),
    ("PUT", f"{WS}/environments/e/versions/1", {}, "InvalidDocument"),
    ("GET", f"{WS}/codes/c/versions/1", None, "ResourceNotFound"),
    ("PUT", f"{WS}/codes/c/versions/1", {}, "InvalidDocument"),
    ("GET", f"{WS}/computes/nope", None, "ResourceNotFound"),
    (
        "PUT",
        f"{WS}/computes/local",
        {"properties": {"computeType": "Kubernetes", "properties": {"namespace": "a"}}},
        "Conflict",
    ),
    ("GET", f"{WS}/jobs/j", None, "Unsupported"),
    ("GET", f"{WS}/Schedules", None, "Unsupported"),
    ("PUT", f"{WS}/data/d/versions/1", {}, "Unsupported"),
    ("POST", f"{WS}/models/m/versions/1/package", {}, "Unsupported"),
    ("GET", f"{WS.split('/workspaces')[0]}/registries/azureml/models/m", None, "Unsupported"),
    ("GET", "/registrymanagement/v1.0/registries/azureml/discovery", None, "Unsupported"),
    ("GET", f"{WS}/datastores/other", None, "ResourceNotFound"),
    ("POST", f"{WS}/datastores/other/listSecrets", {}, "ResourceNotFound"),
    ("POST", f"{WS}/datastores/workspaceblobstore/listSecrets", {"expireAfterHours": 25}, "BadArgument"),
    ("GET", f"{BLOB}?sig=x", None, "AuthenticationFailed"),
    ("GET", f"{WS}/onlineEndpoints/none", None, "ResourceNotFound"),
    ("GET", f"{WS}/onlineEndpoints?$top=x", None, "BadArgument"),
    ("GET", f"{WS}/onlineEndpoints?$top=0", None, "BadArgument"),
    ("PUT", EP, b"{", "BadArgument"),
    ("PUT", EP, b"[]", "BadArgument"),
    ("PUT", EP, b"\xff", "BadArgument"),
    ("PUT", EP, b'{"a": 1e999}', "BadArgument"),
    ("PUT", EP, b'{"a": NaN}', "BadArgument"),
    ("PUT", EP, b'{"tags": {"a": "\\ud800"}}', "BadArgument"),
    ("PUT", EP, b"[" * 19_000, "BadArgument"),
    ("PUT", EP, b" " * 20_001, "RequestTooLarge"),
    ("PUT", EP, {"properties": {"authMode": "Key", "speed": 1}}, "BadArgument"),
    ("PUT", EP, {"properties": {"authMode": "Token"}}, "InvalidDocument"),
    ("PUT", f"{WS}/onlineEndpoints/1x", {"properties": {"authMode": "Key"}}, "InvalidDocument"),
    ("PUT", EP, {"properties": {"authMode": "Key", "traffic": {"blue": 50}}}, "InvalidDocument"),
    ("POST", f"{EP}/token", None, "UserError"),
    ("POST", f"{EP}/regenerateKeys", {"keyType": "Third"}, "BadArgument"),
    ("POST", f"{WS}/onlineEndpoints/none/listKeys", None, "ResourceNotFound"),
    ("PUT", BLUE, {"properties": {"model": "m"}}, "InvalidDocument"),
    ("GET", f"{EP}/deployments/none", None, "ResourceNotFound"),
    ("POST", f"{BLUE}/getLogs", {"tail": 0}, "BadArgument"),
    ("POST", f"{BLUE}/getLogs", {"containerType": "Other"}, "BadArgument"),
    ("POST", f"{BLUE}/getLogs", {"sinceSeconds": 0}, "BadArgument"),
    ("POST", f"{BLUE}/getLogs", {"previous": "yes"}, "BadArgument"),
    ("GET", f"{WS}/models/none", None, "ResourceNotFound"),
    ("GET", f"{WS}/models/none/versions/1", None, "ResourceNotFound"),
    ("GET", f"{WS}/models/m/versions?$orderBy=size", None, "BadArgument"),
    ("PUT", f"{WS}/models/m/versions/1", {"properties": {"modelUri": 3}}, "InvalidDocument"),
    ("PUT", f"{WS}/models/m", {"properties": {"description": "d", "isArchived": True}}, "Unsupported"),
    ("PUT", f"{WS}/models/m", {"properties": {"isArchived": "yes"}}, "BadArgument"),
    ("GET", BLOB, None, "BlobNotFound"),
    ("HEAD", BLOB, None, "BlobNotFound"),
    ("PUT", "/storage/local/azureml-blobstore/a%01b", b"", "InvalidResourceName"),
    ("GET", f"{BLOB}?comp=tags", None, "Unsupported"),
    ("PUT", f"{BLOB}?comp=tags", b"", "Unsupported"),
    ("GET", "/storage/local/azureml-blobstore", None, "Unsupported"),
    ("GET", "/storage/other/azureml-blobstore/a", None, "ResourceNotFound"),
    ("GET", "/storage/local/other/a", None, "ResourceNotFound"),
    ("PUT", "/dataplane/v1/agents/a", {"acknowledged_version": "1"}, "BadArgument"),
    ("PUT", "/dataplane/v1/agents/a", {"envoy": []}, "BadArgument"),
    ("GET", "/dataplane/v1/routing-table?wait_s=61", None, "BadArgument"),
    ("GET", "/identity/token", None, "BadArgument"),
    (
        "GET",
        "/subscriptions/local/providers/Microsoft.MachineLearningServices/locations/l/mfeOperationsStatus/x",
        None,
        "ResourceNotFound",
    ),
]


def assert_error_shape(answer: httpx.Response, code: str) -> None:
    assert answer.status_code == CODES[code], answer.text
    assert answer.headers["x-ms-error-code"] == code
    assert answer.headers["x-request-id"]
    if answer.request.method == "HEAD":
        assert answer.content == b""
        return
    body = answer.json()
    assert list(body) == ["error"]
    assert body["error"]["code"] == code
    assert body["error"]["message"]
    assert set(body["error"]) <= {"code", "message", "target", "details", "additionalInfo"}


@pytest.fixture(params=REFUSED, ids=[f"{method} {path[-40:]} {code}" for method, path, _, code in REFUSED])
def refused(request: pytest.FixtureRequest) -> tuple[str, str, Any, str]:
    row: tuple[str, str, Any, str] = request.param
    return row


def test_error_shape(unchanged: Any, refused: tuple[str, str, Any, str]) -> None:
    method, path, body, code = refused
    content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    assert_error_shape(unchanged.client.request(method, path, content=content), code)


def test_a_body_without_a_length_is_counted_as_it_comes(world: Any) -> None:
    answer = world.client.put(EP, content=(b" " * 1000 for _ in range(21)))
    assert_error_shape(answer, "RequestTooLarge")
    assert "at most 20000 (json_body_bytes)" in answer.json()["error"]["message"]
    assert "ML_LIMIT_JSON_BODY_BYTES" in json.dumps(answer.json())


def test_a_fault_of_ours_is_500_with_the_request_id_and_logged_once(
    world: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> float:
        raise ZeroDivisionError("a secret detail")

    world.client._transport._app = httpx.ASGITransport(create_app(replace(world.services, clock=broken)))
    answer = world.client.put(EP, json={"properties": {"authMode": "Key"}})
    assert_error_shape(answer, "InternalServerError")
    assert answer.headers["x-request-id"] in answer.json()["error"]["message"]
    assert "secret detail" not in answer.text
    faults = [record for record in caplog.records if record.exc_info]
    assert [record.levelno for record in faults] == [logging.ERROR]
    assert vars(faults[0])["fields"]["request_id"] == answer.headers["x-request-id"]
