"""Endpoints over HTTP: what a client sends, what it gets back, and what the store is told."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

WS = "/subscriptions/local/resourceGroups/local/providers/Microsoft.MachineLearningServices/workspaces/local"
EP = f"{WS}/onlineEndpoints/ep1"


def test_a_new_endpoint_is_201_and_says_where_to_ask_on(world: Any) -> None:
    answer = world.client.put(f"{EP}?api-version=2099-01-01", json={"properties": {"authMode": "Key"}})
    assert answer.status_code == 201
    assert answer.headers["Retry-After"] == "1"
    base = "https://test:8443/subscriptions/local/providers/Microsoft.MachineLearningServices/locations/local"
    assert answer.headers["Azure-AsyncOperation"].startswith(f"{base}/mfeOperationsStatus/")
    assert answer.headers["Location"].startswith(f"{base}/mfeOperationResults/")
    assert answer.headers["Location"].endswith("?api-version=2099-01-01")
    body = answer.json()
    assert body["id"] == EP
    assert body["properties"]["scoringUri"] == "https://127.0.0.1:9443/endpoints/ep1/"
    assert body["properties"]["swaggerUri"] == "https://test:8443/endpoints/ep1/swagger.json"
    assert body["properties"]["provisioningState"] == "Creating"
    assert body["properties"]["publicNetworkAccess"] == "Enabled"
    assert len(world.wakes) == 1


def test_the_address_of_the_operation_is_in_the_resource_too(ready: Any) -> None:
    """Azure ML's REST script reads it in the answers of PUT and GET, and waits there."""
    blue, version = f"{EP}/deployments/blue", "?api-version=2021-10-01"
    put = ready.client.put(f"{EP}{version}", json={"properties": {"authMode": "Key", "properties": {"k": "v"}}})
    changed = ready.client.put(f"{blue}{version}", json={**ready.client.get(blue).json(), "tags": {"a": "b"}})
    for path, answer in ((EP, put), (blue, changed)):
        address = answer.json()["properties"]["properties"]["AzureAsyncOperationUri"]
        base = "https://test:8443/subscriptions/local/providers/Microsoft.MachineLearningServices/locations/local/"
        assert address.startswith(f"{base}mfeOperationsStatus/") and address.endswith(version)
        asked, known = (ready.client.get(one).json() for one in (address, answer.headers["Azure-AsyncOperation"]))
        assert asked == known and asked["status"] == "InProgress"
        got = ready.client.get(f"{path}{version}").json()
        assert got["properties"]["properties"]["AzureAsyncOperationUri"] == address
        [listed] = ready.client.get(f"{path.rpartition('/')[0]}{version}").json()["value"]
        assert listed["properties"]["properties"]["AzureAsyncOperationUri"] == address
    ready.settle()
    assert ready.client.get(address).json()["status"] == "Succeeded"
    # It is not the user's: what is sent back is not stored.
    assert ready.client.put(EP, json=ready.client.get(EP).json()).headers["ETag"] == put.headers["ETag"]
    assert ready.store.get_endpoint("ep1").document["properties"] == {"k": "v"}
    # The deletion of the endpoint deletes the deployment, which has no operation of its own then.
    ready.client.delete(EP)
    assert ready.client.get(ready.client.get(blue).json()["properties"]["properties"]["AzureAsyncOperationUri"]).json()


def test_an_operation_of_nobody_is_404(ready: Any) -> None:
    place = "/subscriptions/local/providers/Microsoft.MachineLearningServices/locations/local/mfeOperationsStatus/"
    for name in ("oeidp:nothing:1", "odidp:ep1:nothing:1", "oeidp:ep1:0", "oeidp:ep1:", "oeidp:ep1:1" + "0" * 30):
        assert ready.client.get(place + name).status_code == 404, name


def test_an_update_is_200_and_keeps_what_is_not_the_documents(ready: Any) -> None:
    before = ready.client.get(EP).json()
    keys = ready.client.post(f"{EP}/listKeys").json()
    ready.now[0] += 60
    after = ready.endpoint(traffic={"blue": 100})
    assert after.status_code == 200
    assert after.json()["properties"]["traffic"] == {"blue": 100}
    assert after.json()["properties"]["provisioningState"] == "Updating"
    assert after.json()["systemData"]["createdAt"] == before["systemData"]["createdAt"]
    assert after.json()["systemData"]["lastModifiedAt"] > before["systemData"]["lastModifiedAt"]
    assert ready.client.post(f"{EP}/listKeys").json() == keys


def test_what_get_answers_can_be_put_again_unchanged(ready: Any) -> None:
    before = ready.client.get(EP)
    again = ready.client.put(EP, json=before.json())
    assert (again.status_code, again.headers["ETag"]) == (200, before.headers["ETag"])


def test_paths_and_names_compare_without_case(ready: Any) -> None:
    answer = ready.client.get(EP.replace("resourceGroups", "RESOURCEgroups").replace("ep1", "EP1").lower())
    assert answer.json()["name"] == "ep1"


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("If-Match", '"nonsense"', 412),
        ("If-Match", "*", 200),
        ("If-None-Match", "*", 412),
        ("If-None-Match", '"x"', 400),
    ],
)
def test_preconditions(ready: Any, header: str, value: str, status: int) -> None:
    answer = ready.client.put(EP, json=ready.client.get(EP).json(), headers={header: value})
    assert answer.status_code == status


def test_the_etag_of_a_get_is_good_for_one_change(ready: Any) -> None:
    etag = {"If-Match": ready.client.get(EP).headers["ETag"]}
    change = {"properties": {"authMode": "Key", "description": "new"}}
    assert ready.client.put(EP, json=change, headers=etag).status_code == 200
    assert ready.client.put(EP, json=change, headers=etag).status_code == 412


def test_lists_come_in_pages(world: Any) -> None:
    for name in ("ep1", "ep2", "ep3"):
        assert world.endpoint(name).status_code == 201
    first = world.client.get(f"{WS}/onlineEndpoints?api-version=1&$top=2").json()
    assert [item["name"] for item in first["value"]] == ["ep1", "ep2"]
    second = world.client.get(first["nextLink"]).json()
    assert [item["name"] for item in second["value"]] == ["ep3"]
    assert "nextLink" not in second


def test_delete_is_202_then_gone_and_204_for_what_is_not_there(ready: Any) -> None:
    assert ready.client.delete(EP).status_code == 202
    assert ready.client.get(EP).json()["properties"]["provisioningState"] == "Deleting"
    assert ready.client.delete(f"{WS}/onlineEndpoints/other").status_code == 204


def test_regenerating_a_key_changes_it_alone_whatever_key_value_says(ready: Any) -> None:
    before = ready.client.post(f"{EP}/listKeys").json()
    body = {"keyType": "Secondary", "keyValue": before["secondaryKey"]}
    answer = ready.client.post(f"{EP}/regenerateKeys", json=body)
    assert (answer.status_code, answer.headers["Retry-After"]) == (202, "1")
    after = ready.client.post(f"{EP}/listKeys").json()
    assert after["primaryKey"] == before["primaryKey"]
    assert after["secondaryKey"] != before["secondaryKey"]
    ready.settle()
    assert ready.client.get(answer.headers["Location"]).status_code == 204


@pytest.mark.parametrize(
    ("mode", "verb", "kind"),
    [
        ("Key", "token", "tokens of this server"),
        ("AADToken", "token", "tokens of this server"),
        ("AMLToken", "listKeys", "keys"),
        ("AADToken", "listKeys", "keys"),
        ("AADToken", "regenerateKeys", "keys"),
    ],
)
def test_credentials_of_another_mode_are_refused(world: Any, mode: str, verb: str, kind: str) -> None:
    assert world.endpoint(authMode=mode).status_code == 201
    answer = world.client.post(f"{EP}/{verb}", json={"keyType": "Primary"})
    assert answer.status_code == 400
    assert f"Endpoint 'ep1' does not use {kind} for authentication." in answer.json()["error"]["message"]


def test_shares_must_name_deployments_and_sum_to_100(ready: Any) -> None:
    answer = ready.endpoint(traffic={"red": 100}).json()["error"]
    assert (answer["code"], answer["message"]) == ("InvalidDocument", "traffic.red: there is no deployment red")
    answer = ready.endpoint(traffic={"blue": 100, "bleu": 0}).json()["error"]
    assert (answer["code"], answer["message"]) == ("InvalidDocument", "traffic.bleu: there is no deployment bleu")
    assert answer["additionalInfo"][0]["info"]["hint"] == "did you mean blue? deployments of this endpoint: blue"
    assert ready.endpoint(traffic={"blue": 0}).json()["properties"]["traffic"] == {}
    assert ready.endpoint(traffic={"blue": 90}).status_code == 400
    assert ready.endpoint(traffic={"BLUE": 100}).status_code == 200


def test_another_workspace_is_404_and_says_which_one_there_is(world: Any) -> None:
    answer = world.client.get(WS.replace("workspaces/local", "workspaces/other"))
    assert answer.status_code == 404
    assert "the workspace of this server is local/local/local" in answer.json()["error"]["message"]


def test_authors_and_reasons_of_changes(ready: Any) -> None:
    said = {"Amphitrite-Author": "ada%40lab%0A", "Amphitrite-Reason": quote("größer, \u202e")}
    body = {"properties": {"authMode": "Key", "traffic": {"blue": 100}}}
    assert ready.client.put(EP, json={"properties": {"authMode": "Key"}}).status_code == 200
    assert ready.client.put(EP, json=body, headers=said).status_code == 200
    newest = ready.client.get(f"{EP}/trafficHistory").json()["value"][0]
    assert (newest["author"], newest["reason"]) == ("ada@lab\\u000a", "größer, \\u202e")
    assert (newest["from"], newest["to"], newest["cause"]) == ({}, {"blue": 100}, "update")
    for header, longest in (("Amphitrite-Author", 255), ("Amphitrite-Reason", 1000)):
        refused = ready.client.put(EP, json=body, headers={header: "x" * (longest + 1)})
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "BadArgument")
    # Nobody says who: a client that is not ours.
    assert ready.client.post(f"{EP}/restoreTraffic", json={}).status_code == 200
    undone = ready.client.get(f"{EP}/trafficHistory").json()["value"][0]
    assert (undone["author"], undone["reason"], undone["cause"]) == ("local", None, "undo")
    stale = ready.client.post(f"{EP}/restoreTraffic", json={}, headers={"If-Match": '"0"'})
    assert stale.status_code == 412
