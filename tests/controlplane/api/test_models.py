"""Models over HTTP: versions, containers, archiving."""

from __future__ import annotations

from typing import Any

WS = "/subscriptions/local/resourceGroups/local/providers/Microsoft.MachineLearningServices/workspaces/local"
ARCHIVED = {"properties": {"tags": {}, "properties": {}, "isArchived": True}}


def test_a_version_is_201_then_200_and_replaced_as_a_whole(world: Any) -> None:
    uri = world.upload()
    body = {"properties": {"modelType": "triton_model", "modelUri": uri, "tags": {"a": "1"}}}
    url = f"{WS}/models/m/versions/1"
    first = world.client.put(url, json=body)
    assert (first.status_code, first.json()["name"]) == (201, "1")
    shown = first.json()["properties"]
    assert (shown["modelUri"], shown["tags"], shown["flavors"]) == (uri, {"a": "1"}, {})
    body["properties"].pop("tags")
    second = world.client.put(url, json=body)
    assert (second.status_code, second.json()["properties"]["tags"]) == (200, {})


def test_other_files_under_a_version_are_refused(world: Any) -> None:
    world.model()
    other = {"properties": {"modelType": "triton_model", "modelUri": world.upload("n", ("model_1/2/model.onnx",))}}
    answer = world.client.put(f"{WS}/models/m/versions/1", json=other)
    assert (answer.status_code, answer.json()["error"]["message"]) == (400, "Asset paths cannot be updated.")


def test_containers_count_versions(world: Any) -> None:
    assert world.client.get(f"{WS}/models/m").status_code == 404
    assert world.client.get(f"{WS}/models/m/versions").json() == {"value": []}
    world.model(version="1")
    world.now[0] += 1
    world.model(version="2")
    shown = world.client.get(f"{WS}/models/m").json()["properties"]
    assert (shown["latestVersion"], shown["nextVersion"]) == ("2", "3")
    newest = world.client.get(f"{WS}/models/m/versions?$orderBy=createdtime%20desc&$top=1").json()
    assert [item["name"] for item in newest["value"]] == ["2"]


def test_archived_versions_and_models_are_listed_when_asked_for(world: Any) -> None:
    world.model()

    def listed(path: str, view: str) -> int:
        return len(world.client.get(f"{WS}/{path}?listViewType={view}").json()["value"])

    version = world.client.get(f"{WS}/models/m/versions/1").json()
    version["properties"]["isArchived"] = True
    assert world.client.put(f"{WS}/models/m/versions/1", json=version).status_code == 200
    views = ("ActiveOnly", "ArchivedOnly", "All")
    assert [listed("models/m/versions", view) for view in views] == [0, 1, 1]
    assert world.client.put(f"{WS}/models/m", json=ARCHIVED).json()["properties"]["isArchived"] is True
    assert [listed("models", view) for view in views] == [0, 1, 1]
    assert world.client.get(f"{WS}/models?listViewType=Some").status_code == 400


def test_anonymous_models_are_not_listed(world: Any) -> None:
    body = {"properties": {"modelType": "triton_model", "modelUri": world.upload(), "isAnonymous": True}}
    assert world.client.put(f"{WS}/models/c46393ec/versions/1", json=body).status_code == 201
    assert world.client.get(f"{WS}/models").json() == {"value": []}


def test_a_version_is_deleted_unless_a_deployment_uses_it(ready: Any) -> None:
    ready.model(version="2")
    one, two = f"{WS}/models/m/versions/1", f"{WS}/models/M/versions/2"
    refused = ready.client.delete(one)
    assert (refused.status_code, refused.json()["error"]["message"]) == (409, "model m:1 is used by ep1/blue")
    assert ready.client.delete(f"{WS}/models/m").status_code == 409
    assert [ready.client.delete(two).status_code, ready.client.delete(two).status_code] == [200, 204]
    assert ready.client.get(two).status_code == 404
    assert ready.client.delete(f"{WS}/onlineEndpoints/ep1/deployments/blue").status_code == 202
    assert ready.client.delete(one).status_code == 409, "its instances may still run"
    ready.settle()
    assert ready.client.delete(f"{WS}/models/m").status_code == 200
    assert ready.client.delete(f"{WS}/models/m").status_code == 204
    assert ready.client.get(f"{WS}/models/m").status_code == 404


def test_an_archived_version_is_deleted_and_its_number_may_be_used_again(world: Any) -> None:
    world.model()
    version = world.client.get(f"{WS}/models/m/versions/1").json()
    version["properties"]["isArchived"] = True
    assert world.client.put(f"{WS}/models/m/versions/1", json=version).status_code == 200
    assert world.client.delete(f"{WS}/models/m/versions/1").status_code == 200
    world.model(kind="custom_model")
    assert world.client.get(f"{WS}/models/m/versions/1").json()["properties"]["modelType"] == "custom_model"
