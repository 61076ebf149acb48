"""``?dryRun=true``: judged and compared as a PUT, and nothing changed."""

from __future__ import annotations

from typing import Any

from .conftest import WS

EP = f"{WS}/onlineEndpoints/ep1"
BLUE = f"{EP}/deployments/blue"
DRY = {"dryRun": "true"}


def test_a_new_endpoint_is_told_and_not_made(world: Any) -> None:
    body = {"location": "x", "properties": {"authMode": "Key"}}
    told = world.client.put(EP, json=body, params=DRY)
    assert (told.status_code, told.json()["change"], told.json()["resource"]["name"]) == (200, "create", "ep1")
    assert world.client.get(EP).status_code == 404


def test_a_deployment_and_why_it_would_be_replaced(ready: Any) -> None:
    before = ready.client.get(BLUE)
    told = ready.client.put(BLUE, json=before.json(), params=DRY).json()
    assert (told["change"], told["reasons"], told["resource"]) == ("none", [], before.json())
    ready.model("m", "2")
    wanted = before.json()
    wanted["properties"]["model"] = f"{WS}/models/m/versions/2"
    told = ready.client.put(BLUE, json=wanted, params=DRY).json()
    assert (told["change"], told["reasons"]) == ("replace", ["model"])
    assert told["resource"]["properties"]["model"].endswith("/m/versions/2")
    assert ready.client.get(BLUE).headers["ETag"] == before.headers["ETag"]


def test_what_a_put_refuses_is_refused(ready: Any) -> None:
    wanted = ready.client.get(BLUE).json()
    wanted["properties"]["model"] = f"{WS}/models/m/versions/9"
    answer = ready.client.put(BLUE, json=wanted, params=DRY)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "InvalidDocument")
    traffic = ready.client.get(EP).json()
    traffic["properties"]["traffic"] = {"nobody": 100}
    assert ready.client.put(EP, json=traffic, params=DRY).status_code == 400
