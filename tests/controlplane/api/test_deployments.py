"""Deployments over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from amphitrite.controlplane.core.observed.status import Ref
from amphitrite.controlplane.runtimes.runtime import LogQuery
from amphitrite.schemas.errors import Error

WS = "/subscriptions/local/resourceGroups/local/providers/Microsoft.MachineLearningServices/workspaces/local"
BLUE = f"{WS}/onlineEndpoints/ep1/deployments/blue"


def test_a_new_deployment_shows_what_is_in_force(world: Any) -> None:
    world.model()
    world.endpoint()
    answer = world.deployment(count=2)
    body = answer.json()
    assert (answer.status_code, body["id"], body["sku"]["capacity"]) == (201, BLUE, 2)
    shown = body["properties"]
    assert shown["model"] == f"{WS}/models/m/versions/1"
    assert shown["scaleSettings"] == {"scaleType": "Default"}
    assert shown["requestSettings"] == {
        "requestTimeout": "PT5S",
        "maxConcurrentRequestsPerInstance": 128,
        "maxQueueWait": "PT0S",
    }
    assert shown["readinessProbe"]["period"] == "PT2S"
    assert shown["livenessProbe"]["failureThreshold"] == 3
    assert shown["provisioningState"] == "Creating"


def test_status_and_error_of_the_reconciler_are_shown(ready: Any) -> None:
    error = Error("ResourceNotReady", "the model does not load", target="ep1/blue")
    facts = {"engine": "Triton", "ready_instances": 0, "notes": ["on the CPU"]}
    ready.record(Ref("ep1", "blue"), 1, "Failed", error=error, facts=facts)
    shown = ready.client.get(BLUE).json()["properties"]
    assert shown["provisioningState"] == "Failed"
    assert shown["error"] == error.to_body()
    assert shown["status"] == {
        "phase": "Ready",
        "message": "all is well",
        "engine": "Triton",
        "readyInstances": 0,
        "notes": ["on the CPU"],
    }


def test_what_is_accepted_and_cannot_be_met_is_noted(ready: Any) -> None:
    note = (
        "app_insights_enabled is stored, but nothing is sent to Application Insights: metrics are at the "
        "server's /metrics, logs at ml online-deployment get-logs"
    )
    answer = ready.deployment(appInsightsEnabled=True)
    assert (answer.status_code, answer.json()["properties"]["status"]["notes"]) == (200, [note])
    ready.settle(notes=["on the CPU"])
    shown = ready.client.get(BLUE).json()["properties"]
    assert (shown["appInsightsEnabled"], shown["status"]["notes"]) == (True, ["on the CPU", note])
    [wanted] = ready.store.load_world().deployments
    before = wanted.workload
    assert ready.deployment(appInsightsEnabled=False).status_code == 200
    assert ready.client.get(BLUE).json()["properties"]["status"]["notes"] == ["on the CPU"]
    [wanted] = ready.store.load_world().deployments
    assert wanted.workload == before


def test_what_get_answers_can_be_put_again_unchanged(ready: Any) -> None:
    before = ready.client.get(BLUE)
    again = ready.client.put(BLUE, json=before.json())
    assert (again.status_code, again.headers["ETag"]) == (200, before.headers["ETag"])
    polled = ready.client.get(again.headers["Azure-AsyncOperation"]).json()
    assert polled["status"] == "Succeeded"


def test_a_label_is_pinned_to_the_version_it_means_now(ready: Any) -> None:
    ready.now[0] += 1
    ready.model(version="2")
    shown = ready.deployment("green", model="azureml:m@latest").json()["properties"]
    assert shown["model"] == f"{WS}/models/m/versions/2"


def test_an_archived_model_is_refused_to_new_users_and_kept_by_old_ones(ready: Any) -> None:
    archived = {"properties": {"tags": {}, "properties": {}, "isArchived": True}}
    assert ready.client.put(f"{WS}/models/m", json=archived).status_code == 200
    assert ready.deployment(count=2).status_code == 200
    assert "model m:1 is archived" in ready.deployment("green").json()["error"]["message"]


def test_a_deployment_with_traffic_is_not_deleted(ready: Any) -> None:
    assert ready.endpoint(traffic={"blue": 100}).status_code == 200
    answer = ready.client.delete(BLUE)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "UserError")
    assert "--force" in answer.json()["error"]["message"] + str(answer.json()["error"])
    assert ready.endpoint(traffic={}).status_code == 200
    assert ready.client.delete(BLUE).status_code == 202
    assert ready.client.delete(f"{BLUE}2").status_code == 204
    assert ready.client.delete(f"{WS}/onlineEndpoints/ep2/deployments/blue").status_code == 204


def test_forced_its_traffic_goes_to_the_others(ready: Any) -> None:
    ready.deployment("green")
    assert ready.endpoint(traffic={"blue": 90, "green": 10}).status_code == 200
    stale = ready.client.delete(f"{BLUE}?force=true", headers={"If-Match": '"other"'})
    assert (stale.status_code, stale.json()["error"]["code"]) == (412, "PreconditionFailed")
    endpoint = f"{WS}/onlineEndpoints/ep1"
    assert ready.client.get(endpoint).json()["properties"]["traffic"] == {"blue": 90, "green": 10}
    assert ready.client.delete(f"{BLUE}?force=true").status_code == 202
    assert ready.client.get(endpoint).json()["properties"]["traffic"] == {"green": 100}


def test_an_endpoint_without_the_parent_is_404(world: Any) -> None:
    world.model()
    assert world.deployment().status_code == 404


def test_every_wrong_field_is_said_at_once(ready: Any) -> None:
    answer = ready.deployment("green", model="azureml:nope:1", instanceType="Standard_X", modelMountPath="/m")
    assert {detail["target"] for detail in answer.json()["error"]["details"]} == {
        "model",
        "instance_type",
        "model_mount_path",
    }


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"model": None}, "model: required: the deployment names no model"),
        (
            {"endpointComputeType": "Kubernetes", "instanceType": None},
            "type: kubernetes: the endpoint names no compute, and its instances run on this machine (compute local)",
        ),
    ],
)
def test_what_is_left_out_is_named_and_nothing_that_follows_from_it(
    ready: Any, properties: dict[str, Any], message: str
) -> None:
    error = ready.deployment("green", **properties).json()["error"]
    assert (error["code"], error["message"]) == ("InvalidDocument", message)


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        ({}, LogQuery(5000)),
        ({"tail": 50, "containerType": "InferenceServer"}, LogQuery(50)),
        ({"containerType": "StorageInitializer"}, LogQuery(5000, "storage-initializer")),
        ({"sinceSeconds": 600, "previous": True}, LogQuery(5000, since_s=600.0, previous=True)),
        ({"sinceSeconds": None, "previous": None}, LogQuery(5000)),
    ],
)
def test_logs(ready: Any, body: dict[str, Any], asked: LogQuery) -> None:
    answer = ready.client.post(f"{BLUE}/getLogs", json=body)
    assert answer.json()["content"] == "server ready\n"
    assert ready.runtime.asked == [("ep1", "blue", asked)]


def test_an_operation_is_a_view_on_its_generation(ready: Any) -> None:
    changed = ready.deployment(count=2)
    url = changed.headers["Azure-AsyncOperation"]
    answer = ready.client.get(url)
    assert (answer.json()["status"], answer.headers["Retry-After"]) == ("InProgress", "1")
    assert ready.client.get(changed.headers["Location"]).status_code == 202
    ready.record(Ref("ep1", "blue"), 1, "Updating")
    ready.settle()
    done = ready.client.get(url).json()
    assert (done["status"], done["percentComplete"], done["resourceId"]) == ("Succeeded", 100, BLUE)
    assert done["endTime"] >= done["startTime"]
    assert done["properties"]["phases"][0]["name"] == "Ready"
    assert ready.client.get(changed.headers["Location"]).json()["id"] == BLUE


def test_a_failed_operation_carries_the_error(ready: Any) -> None:
    changed = ready.deployment(count=2)
    error = Error("ResourceNotReady", "the model does not load", target="ep1/blue")
    ready.record(Ref("ep1", "blue"), 2, "Failed", error=error)
    done = ready.client.get(changed.headers["Azure-AsyncOperation"]).json()
    assert (done["status"], done["error"]) == ("Failed", error.to_body())
    result = ready.client.get(changed.headers["Location"])
    assert (result.status_code, result.json()["error"]) == (500, error.to_body())
