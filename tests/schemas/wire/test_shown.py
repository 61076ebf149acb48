"""What ``show`` prints: Azure ML's objects with their keys in Azure ML's order."""

from __future__ import annotations

import json
from typing import Any

from amphitrite.schemas import wire

WORKSPACE = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"
SYSTEM_DATA = {
    "createdBy": "local-user",
    "createdByType": "User",
    "createdAt": "2026-11-20T16:59:55.111930+00:00",
    "lastModifiedBy": "local-user",
    "lastModifiedByType": "User",
    "lastModifiedAt": "2026-11-20T17:00:00.000000+00:00",
}
CREATION = {
    "created_at": "2026-11-20T16:59:55.111930+00:00",
    "created_by": "local-user",
    "created_by_type": "User",
    "last_modified_at": "2026-11-20T17:00:00.000000+00:00",
    "last_modified_by": "local-user",
    "last_modified_by_type": "User",
}
ENDPOINT: dict[str, Any] = {
    "id": f"{WORKSPACE}/onlineEndpoints/ep1",
    "name": "ep1",
    "location": "local",
    "kind": "Managed",
    "tags": {"t": "v"},
    "identity": {"type": "SystemAssigned", "principalId": "1111", "tenantId": "2222"},
    "properties": {
        "description": "hello",
        "authMode": "AMLToken",
        "compute": None,
        "traffic": {"blue": 100},
        "mirrorTraffic": {},
        "publicNetworkAccess": "Enabled",
        "scoringUri": "https://localhost:9443/endpoints/ep1/",
        "swaggerUri": "https://localhost:9443/endpoints/ep1/swagger.json",
        "properties": {"k": "v"},
        "provisioningState": "Succeeded",
    },
    "systemData": SYSTEM_DATA,
}
DEPLOYMENT: dict[str, Any] = {
    "id": f"{WORKSPACE}/onlineEndpoints/ep1/deployments/green",
    "name": "green",
    "location": "local",
    "tags": {"x": "y"},
    "sku": {"name": "Default", "capacity": 2},
    "properties": {
        "model": f"{WORKSPACE}/models/m/versions/1",
        "properties": {},
        "environmentVariables": {"A": "b"},
        "appInsightsEnabled": False,
        "scaleSettings": {"scaleType": "Default"},
        "requestSettings": {
            "maxQueueWait": "PT0.5S",
            "maxConcurrentRequestsPerInstance": 4,
            "requestTimeout": "PT3S",
        },
        "readinessProbe": {"timeout": "PT2S", "period": "PT10S", "initialDelay": "PT0S"},
        "instanceType": "Standard_NC6s_v3",
        "endpointComputeType": "Managed",
        "egressPublicNetworkAccess": "Enabled",
        "provisioningState": "Failed",
        "status": {"message": "model_1 failed to load", "engine": "Triton", "ready_instances": 0, "notes": ["no GPU"]},
        "error": {"code": "ResourceNotReady", "message": "no"},
    },
    "systemData": SYSTEM_DATA,
}


def printed(value: object) -> str:
    return json.dumps(value, indent=1)


def test_endpoint() -> None:
    want = {
        "id": f"{WORKSPACE}/onlineEndpoints/ep1",
        "name": "ep1",
        "description": "hello",
        "tags": {"t": "v"},
        "provisioning_state": "Succeeded",
        "properties": {
            "createdBy": "local-user",
            "createdAt": "2026-11-20T16:59:55.111930+0000",
            "lastModifiedAt": "2026-11-20T17:00:00.000000+0000",
            "k": "v",
        },
        "auth_mode": "aml_token",
        "scoring_uri": "https://localhost:9443/endpoints/ep1/",
        "location": "local",
        "openapi_uri": "https://localhost:9443/endpoints/ep1/swagger.json",
        "identity": {"type": "system_assigned", "principal_id": "1111", "tenant_id": "2222"},
        "traffic": {"blue": 100, "green": 0},
        "kind": "Managed",
        "mirror_traffic": {},
        "public_network_access": "enabled",
    }
    assert printed(wire.show_endpoint(ENDPOINT, [DEPLOYMENT, {"name": "Blue"}])) == printed(want)


def test_kubernetes_endpoint() -> None:
    compute = f"{WORKSPACE}/computes/k8s"
    shown = wire.show_endpoint({**ENDPOINT, "properties": {**ENDPOINT["properties"], "compute": compute}})
    assert (shown["kind"], shown["compute"]) == ("K8S", f"azureml:{compute}")
    assert "public_network_access" not in shown


def test_deployment() -> None:
    want = {
        "name": "green",
        "endpoint_name": "ep1",
        "id": f"{WORKSPACE}/onlineEndpoints/ep1/deployments/green",
        "tags": {"x": "y"},
        "properties": {},
        "model": f"azureml:{WORKSPACE}/models/m/versions/1",
        "environment_variables": {"A": "b"},
        "app_insights_enabled": False,
        "scale_settings": {"type": "default"},
        "request_settings": {
            "request_timeout_ms": 3000,
            "max_concurrent_requests_per_instance": 4,
            "max_queue_wait_ms": 500,
        },
        "readiness_probe": {"period": 10, "initial_delay": 0, "timeout": 2},
        "provisioning_state": "Failed",
        "instance_count": 2,
        "type": "managed",
        "instance_type": "Standard_NC6s_v3",
        "egress_public_network_access": "enabled",
        "creation_context": CREATION,
        "status": {
            "message": "model_1 failed to load",
            "engine": "Triton",
            "ready_instances": 0,
            "notes": ["no GPU"],
            "error": {"code": "ResourceNotReady", "message": "no"},
        },
    }
    assert printed(wire.show_deployment(DEPLOYMENT)) == printed(want)


def test_kubernetes_deployment() -> None:
    properties = {"endpointComputeType": "Kubernetes", "containerResourceRequirements": {}}
    shown = wire.show_deployment({**DEPLOYMENT, "properties": properties})
    assert (shown["type"], shown["resources"]) == ("kubernetes", {})
    assert "creation_context" not in shown


def test_models() -> None:
    version = {
        "id": f"{WORKSPACE}/models/m/versions/2",
        "name": "2",
        "properties": {
            "flavors": {},
            "modelType": "triton_model",
            "modelUri": "azureml://x",
            "tags": {},
            "properties": {},
        },
        "systemData": SYSTEM_DATA,
    }
    want = {
        "name": "m",
        "id": f"azureml:{WORKSPACE}/models/m/versions/2",
        "type": "triton_model",
        "path": "azureml://x",
        "version": "2",
        "properties": {},
        "tags": {},
        "creation_context": CREATION,
    }
    assert printed(wire.show_model(version)) == printed(want)
    container = {
        "id": f"{WORKSPACE}/models/m",
        "name": "m",
        "properties": {"latestVersion": "2", "nextVersion": "3"},
        "systemData": SYSTEM_DATA,
    }
    assert wire.show_model_container(container) == {
        "name": "m",
        "id": f"azureml:{WORKSPACE}/models/m",
        "type": "custom_model",
        "properties": {},
        "tags": {},
        "creation_context": CREATION,
        "latest_version": "2",
    }


def test_environment() -> None:
    resource = {
        "id": f"{WORKSPACE}/environments/e/versions/1",
        "name": "1",
        "properties": {"image": "i", "osType": "Linux", "tags": {}, "isAnonymous": False},
    }
    assert wire.show_environment(resource) == {
        "name": "e",
        "id": f"azureml:{WORKSPACE}/environments/e/versions/1",
        "tags": {},
        "version": "1",
        "image": "i",
        "os_type": "linux",
    }
