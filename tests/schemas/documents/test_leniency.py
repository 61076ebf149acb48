"""What Azure ML accepts is accepted, and becomes one canonical form."""

from __future__ import annotations

from typing import Any

import pytest

from amphitrite.schemas import documents
from amphitrite.schemas.documents.inline_deployments import is_legacy, split

BLUE = {"name": "blue", "endpoint_name": "my-ep", "instance_type": "Standard_DS3_v2"}
ROWS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("managed_online_endpoint", {"$schema": "https://azuremlschemas.azureedge.net/latest/managedOnlineEndpoint.schema.json",
                                 "auth_mode": "Key"}, {"auth_mode": "key"}),
    ("managed_online_endpoint", {"auth_mode": "AMLToken"}, {"auth_mode": "aml_token"}),
    ("managed_online_endpoint", {"auth_mode": "aml_token"}, {"auth_mode": "aml_token"}),
    ("managed_online_endpoint", {"traffic": {"Blue": "90", "green": 10.0}}, {"traffic": {"Blue": 90, "green": 10}}),
    ("managed_online_endpoint", {"identity": {"type": "SystemAssigned", "principal_id": "p"}},
     {"identity": {"type": "system_assigned"}}),
    ("managed_online_endpoint", {"public_network_access": "Disabled"}, {"public_network_access": "disabled"}),
    ("managed_online_endpoint", {"tags": {"n": 1, "f": 1.5, "b": True, "s": ""}},
     {"tags": {"n": "1", "f": "1.5", "b": "true", "s": ""}}),
    ("managed_online_endpoint", {"id": "/x", "provisioning_state": "Succeeded", "kind": "Managed", "status": {},
                                 "scoring_uri": "https://x/", "openapi_uri": "https://x", "location": "here",
                                 "properties": {"createdBy": "me", "createdAt": "t", "lastModifiedAt": "t", "k": 1}},
     {"properties": {"k": "1"}}),
    ("kubernetes_online_endpoint", {"compute": "azureml:k8s"}, {"compute": "azureml:k8s"}),
    ("managed_online_deployment", {**BLUE, "type": "Managed", "instance_count": " 2 ", "app_insights_enabled": "True"},
     {**BLUE, "type": "managed", "instance_count": 2, "app_insights_enabled": True}),
    ("managed_online_deployment", {**BLUE, "model": {"version": 1.0, "name": "m", "path": "x", "type": "TritonModel"}},
     {**BLUE, "model": {"version": "1.0", "name": "m", "path": "x", "type": "triton_model"}}),
    ("managed_online_deployment", {**BLUE, "environment": {"conda_file": {"name": "x", "dependencies": [{"pip": []}]}}},
     {**BLUE, "environment": {"conda_file": {"name": "x", "dependencies": [{"pip": []}]}}}),
    ("managed_online_deployment", {**BLUE, "environment": "azureml://registries/azureml/environments/e/labels/latest"},
     {**BLUE, "environment": "azureml://registries/azureml/environments/e/labels/latest"}),
    ("managed_online_deployment", {**BLUE, "data_collector": {"collections": {"c": {"enabled": True}},
                                                              "sampling_rate": "0.5", "rolling_rate": "Hour"}},
     {**BLUE, "data_collector": {"collections": {"c": {"enabled": "true"}}, "sampling_rate": 0.5,
                                 "rolling_rate": "hour"}}),
    ("kubernetes_online_deployment",
     {"name": "blue", "endpoint_name": "my-ep", "type": "Kubernetes", "resources": {"limits": {"nvidia.com/gpu": "1"}},
      "scale_settings": {"type": "TargetUtilization", "min_instances": "1"}},
     {"name": "blue", "endpoint_name": "my-ep", "type": "kubernetes", "resources": {"limits": {"gpu": "1"}},
      "scale_settings": {"type": "target_utilization", "min_instances": 1}}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "written", "canonical"), ROWS)
def test_accepted(kind: str, written: dict[str, Any], canonical: dict[str, Any]) -> None:
    written, canonical = {"name": "my-ep", **written}, {"name": "my-ep", **canonical}
    assert documents.validate(kind, written) == []
    assert documents.normalize(kind, written) == canonical
    assert documents.normalize(kind, canonical) == canonical


def test_source_texts_win_over_what_yaml_made_of_them() -> None:
    document = {"name": "m", "path": ".", "version": 1.1, "tags": {"octal": 8, "yes": True}}
    texts: dict[tuple[str | int, ...], str] = {("version",): "1.10", ("tags", "octal"): "010", ("tags", "yes"): "yes"}
    assert documents.validate("model", document, texts) == []
    assert documents.normalize("model", document, texts) == {
        "name": "m",
        "path": ".",
        "version": "1.10",
        "tags": {"octal": "010", "yes": "yes"},
    }


def test_the_older_single_document_is_taken_apart() -> None:
    document = {
        "name": "my-ep",
        "type": "online",
        "auth_mode": "Key",
        "traffic": {"blue": "100"},
        "deployments": [
            {
                "name": "blue",
                "instance_type": "x",
                "instance_count": "2",
                "model": {"path": "m", "name": "m", "version": 1},
            }
        ],
    }
    texts: dict[tuple[str | int, ...], str] = {("deployments", 0, "model", "version"): "01"}
    assert is_legacy(document)
    assert documents.validate("legacy_endpoint", document, texts) == []
    endpoint, deployments = split(documents.normalize("legacy_endpoint", document, texts))
    assert endpoint == {"name": "my-ep", "auth_mode": "key", "traffic": {"blue": 100}}
    assert deployments == [
        {
            "endpoint_name": "my-ep",
            "name": "blue",
            "instance_type": "x",
            "instance_count": 2,
            "model": {"path": "m", "name": "m", "version": "01"},
        }
    ]


@pytest.mark.parametrize(
    ("document", "endpoint", "deployment"),
    [
        ({}, "managed_online_endpoint", "managed_online_deployment"),
        ({"compute": "x", "type": "Kubernetes"}, "kubernetes_online_endpoint", "kubernetes_online_deployment"),
        (None, "managed_online_endpoint", "managed_online_deployment"),
    ],
)
def test_kinds(document: object, endpoint: str, deployment: str) -> None:
    assert documents.endpoint_kind(document) == endpoint
    assert documents.deployment_kind(document) == deployment
