"""What Azure's SDK stumbles over when a server answers otherwise, as far as it is about replies.

The names are those of the list of such things that ``tests/sdk`` goes by too: there they are
watched with the SDK.
"""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import URI, WS, deployment_body, endpoint_body

EP1 = f"{WS}/onlineEndpoints/ep1"

#: Entries of an endpoint's properties that the server adds.
GIVEN = {"AzureAsyncOperationUri", "azureml.onlineendpointid"}


def test_h02_replies_have_what_the_put_did_not(world: Any) -> None:
    world.model()
    assert world.client.get(f"{WS}/models/m/versions/1").json()["properties"]["flavors"] == {}
    bare = {"location": "local", "properties": {"authMode": "Key"}}
    assert set(world.client.put(EP1, json=bare).json()["properties"]["properties"]) == GIVEN
    body = deployment_body()
    del body["sku"]
    shown = world.client.put(f"{EP1}/deployments/blue", json=body).json()
    assert shown["properties"]["scaleSettings"] == {"scaleType": "Default"}
    assert shown["sku"] == {"name": "Default", "capacity": 1}


def test_h03_dates_that_the_sdk_adds_are_not_stored(world: Any) -> None:
    added = {"createdBy": "me", "createdAt": "2026-11-20", "lastModifiedAt": "2026-11-20", "k": "v"}
    shown = world.endpoint(properties=added).json()["properties"]["properties"]
    assert set(shown) == {"k", *GIVEN} and shown["k"] == "v"


def test_h12_anonymous_files_are_a_version_for_each_type(world: Any) -> None:
    """The SDK calls an inline model by its content and version 1: the same directory may be tried
    as one type and then as another. It goes on with the id of the reply."""
    uri = world.upload("inline")

    def put(kind: str) -> tuple[int, str, str]:
        body = {"properties": {"modelType": kind, "modelUri": uri, "isAnonymous": True}}
        answer = world.client.put(f"{WS}/models/c46393ec/versions/1", json=body)
        assert answer.status_code < 300, answer.text
        return answer.status_code, answer.json()["id"].rpartition("/")[2], answer.json()["properties"]["modelType"]

    assert put("triton_model") == (201, "1", "triton_model")
    assert put("custom_model") == (201, "2", "custom_model")
    assert put("triton_model") == (200, "1", "triton_model")
    assert put("custom_model") == (200, "2", "custom_model")
    assert world.client.get(f"{WS}/models").json()["value"] == []


def test_h12_a_version_that_somebody_named_keeps_its_type(world: Any) -> None:
    world.model()
    for anonymous in (False, True):
        properties = {"modelType": "custom_model", "modelUri": f"{URI}/LocalUpload/m/models", "isAnonymous": anonymous}
        answer = world.client.put(f"{WS}/models/m/versions/1", json={"properties": properties})
        assert answer.status_code == 400, answer.text


def test_h15_ids_are_spelled_as_the_sdk_parses_them(ready: Any) -> None:
    paths = ("", "/models/m/versions/1", "/onlineEndpoints/ep1", "/onlineEndpoints/ep1/deployments/blue")
    for path in paths:
        shown = ready.client.get(f"{WS}{path}".replace("resourceGroups", "resourcegroups"))
        assert shown.json()["id"] == f"{WS}{path}"


def test_h16_bodies_are_json_or_empty(ready: Any) -> None:
    changed = ready.client.put(EP1, json=endpoint_body(traffic={"blue": 100}))
    assert changed.headers["Content-Type"].startswith("application/json")
    gone = ready.client.delete(f"{EP1}/deployments/nothing")
    assert (gone.status_code, gone.content) == (204, b"")
    going = ready.client.delete(EP1)
    assert (going.status_code, going.content) == (202, b"")


def test_h17_the_next_link_is_absolute_and_takes_the_clients_version(world: Any) -> None:
    for number in range(3):
        assert world.endpoint(f"ep{number}").status_code == 201
    first = world.client.get(f"{WS}/onlineEndpoints?$top=2&api-version=2022-02-01-preview").json()
    assert first["nextLink"].startswith("https://test:8443/")
    second = world.client.get(first["nextLink"]).json()
    names = [item["name"] for item in first["value"] + second["value"]]
    assert (names, "nextLink" in second) == (["ep0", "ep1", "ep2"], False)


@pytest.mark.parametrize("name", ["ab", "a" * 33, "1cats", "cats_", "cats-", "c%20ts"])
def test_h21_the_server_checks_names_as_strictly_as_both_checks_of_the_sdk(ready: Any, name: str) -> None:
    for url, body in (
        (f"{WS}/onlineEndpoints/{name}", endpoint_body()),
        (f"{EP1}/deployments/{name}", deployment_body()),
    ):
        answer = ready.client.put(url, json=body)
        assert answer.status_code == 400
        assert "name" in answer.json()["error"]["message"]
