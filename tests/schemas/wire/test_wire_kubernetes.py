"""Fields that only some documents have travel to the wire and back without loss."""

from __future__ import annotations

from typing import Any

import pytest

from amphitrite.schemas import documents, wire
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import compute_id, deployment_id, endpoint_id, environment_id, model_id

WORKSPACE = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"
DEPLOYMENT: dict[str, Any] = {
    "name": "blue",
    "endpoint_name": "my-ep",
    "instance_count": 3,
    "model": model_id(WORKSPACE, "m", "1.0"),
    "environment": environment_id(WORKSPACE, "e", "2"),
}
ROUND_TRIPS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        {"type": "kubernetes", "resources": {"requests": {"cpu": "1", "gpu": "1"}, "limits": {"memory": "2Gi"}}},
        {
            "endpointComputeType": "Kubernetes",
            "containerResourceRequirements": {
                "containerResourceRequests": {"cpu": "1", "gpu": "1"},
                "containerResourceLimits": {"memory": "2Gi"},
            },
        },
    ),
    (
        {
            "type": "kubernetes",
            "scale_settings": {"type": "target_utilization", "min_instances": 1, "polling_interval": 90},
        },
        {"scaleSettings": {"scaleType": "TargetUtilization", "minInstances": 1, "pollingInterval": "PT90S"}},
    ),
    (
        {"instance_type": "x", "request_settings": {"max_queue_wait_ms": 500, "request_timeout_ms": 60_001}},
        {"requestSettings": {"maxQueueWait": "PT0.5S", "requestTimeout": "PT60.001S"}},
    ),
    (
        {
            "instance_type": "x",
            "data_collector": {
                "collections": {"model_inputs": {"enabled": "true", "data": "d"}, "more": {"enabled": "false"}},
                "sampling_rate": 0.5,
                "rolling_rate": "hour",
                "request_logging": {"capture_headers": ["x-a"]},
            },
        },
        {
            "dataCollector": {
                "collections": {
                    "model_inputs": {"dataCollectionMode": "Enabled", "dataId": "d", "samplingRate": 0.5},
                    "more": {"dataCollectionMode": "Disabled", "samplingRate": 0.5},
                },
                "rollingRate": "Hour",
                "requestLogging": {"captureHeaders": ["x-a"]},
            }
        },
    ),
    (
        {"instance_type": "x", "app_insights_enabled": True, "private_network_connection": False},
        {"appInsightsEnabled": True, "privateNetworkConnection": False},
    ),
]


@pytest.mark.parametrize(("fields", "properties"), ROUND_TRIPS)
def test_deployment(fields: dict[str, Any], properties: dict[str, Any]) -> None:
    document = {**DEPLOYMENT, **fields}
    assert documents.validate(documents.deployment_kind(document), document) == []
    body = wire.deployment_to_wire(document, "here")
    assert properties.items() <= body["properties"].items()
    assert wire.deployment_from_wire("my-ep", "blue", body) == document


@pytest.mark.parametrize(
    "fields",
    [
        {"compute": compute_id(WORKSPACE, "azureml:k8s")},
        {"identity": {"type": "none"}},
        {"identity": {"type": "user_assigned", "user_assigned_identities": [{"resource_id": "/subscriptions/x"}]}},
        {"auth_mode": "aml_token", "mirror_traffic": {"green": 10}},
        {"auth_mode": "aad_token", "public_network_access": "disabled"},
    ],
)
def test_endpoint(fields: dict[str, Any]) -> None:
    document = {"name": "my-ep", "auth_mode": "key", **fields}
    assert documents.validate(documents.endpoint_kind(document), document) == []
    assert wire.endpoint_from_wire("my-ep", wire.endpoint_to_wire(document, "here")) == document


def test_references_become_ids_on_the_way() -> None:
    document = {
        **DEPLOYMENT,
        "model": "azureml:m@latest",
        "code_configuration": {"code": "azureml:c:1", "scoring_script": "s.py"},
    }
    body = wire.deployment_to_wire(document, "here", lambda kind, reference: f"{kind}|{reference}")
    assert body["properties"]["model"] == "models|azureml:m@latest"
    assert body["properties"]["codeConfiguration"]["codeId"] == "codes|azureml:c:1"


def test_an_inline_model_has_no_wire_form() -> None:
    with pytest.raises(Error, match="model must be a reference here; found an inline definition"):
        wire.deployment_to_wire({**DEPLOYMENT, "model": {"path": "."}}, "here")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"default_deployment_template": {"asset_id": "t"}}, "deployment templates are not supported"),
        ({"datastore": "other"}, "found 'other'; allowed: workspaceblobstore"),
    ],
)
def test_what_a_workspace_has_no_place_for_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(Error, match=message) as caught:
        wire.model_to_wire({"name": "m", "path": ".", **fields}, "azureml://x")
    assert caught.value.code == "Unsupported"


def test_ids() -> None:
    assert endpoint_id(WORKSPACE, "e") == f"{WORKSPACE}/onlineEndpoints/e"
    assert deployment_id(WORKSPACE, "e", "d") == f"{WORKSPACE}/onlineEndpoints/e/deployments/d"
    assert model_id(WORKSPACE, "m") == f"{WORKSPACE}/models/m"
    assert compute_id(WORKSPACE, "k") == compute_id(WORKSPACE, f"azureml:{WORKSPACE}/computes/k")
