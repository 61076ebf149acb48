"""Computes travel to the wire and back without loss, and what is shown of them."""

from __future__ import annotations

from typing import Any

import pytest

from amphitrite.schemas import documents, wire
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import compute_id, parse_compute

WORKSPACE = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"
DOCUMENT: dict[str, Any] = {
    "name": "k8s",
    "type": "kubernetes",
    "description": "four GPUs",
    "tags": {"team": "vision"},
    "namespace": "models",
    "kubeconfig": "clusters: []",
    "default_instance_type": "small",
    "instance_types": [
        {
            "name": "small",
            "description": "a slice",
            "resources": {"requests": {"cpu": "1"}, "limits": {"nvidia.com/mig-1g.10gb": "1"}},
            "node_selector": {"pool": "gpu"},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "tolerationSeconds": 3}],
            "affinity": {"podAntiAffinity": {"x": []}},
            "topology_spread_constraints": [{"maxSkew": 1}],
            "priority_class_name": "serving",
            "runtime_class_name": "nvidia",
            "image_pull_secrets": ["registry"],
            "image": "tritonserver@sha256:0",
        }
    ],
}


def test_there_and_back() -> None:
    assert documents.validate("kubernetes_compute", DOCUMENT) == []
    body = wire.compute_to_wire(DOCUMENT, "here")
    assert body["location"] == "here"
    assert (body["properties"]["computeType"], body["properties"]["description"]) == ("Kubernetes", "four GPUs")
    inner = body["properties"]["properties"]
    assert (inner["namespace"], inner["defaultInstanceType"], inner["kubeconfig"]) == (
        "models",
        "small",
        "clusters: []",
    )
    assert inner["instanceTypes"]["small"]["nodeSelector"] == {"pool": "gpu"}
    assert wire.compute_from_wire("k8s", body) == DOCUMENT
    assert wire.compute_from_wire("k8s", {**body, "id": "x", "systemData": {}}) == DOCUMENT


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"scaleSettings": {}}, "properties.scaleSettings: unknown property"),
        ({"properties": {"relay": "x"}}, "properties.properties.relay: unknown property"),
        ({"properties": {"instanceTypes": []}}, "properties.properties.instanceTypes: must be a JSON object"),
        ({"properties": {"instanceTypes": {"a": {"gpus": 1}}}}, "a.gpus: unknown property"),
        ({"properties": "x"}, "properties.properties: must be a JSON object"),
    ],
)
def test_what_is_not_understood_is_refused(properties: dict[str, Any], message: str) -> None:
    with pytest.raises(Error) as caught:
        wire.compute_from_wire("k8s", {"properties": properties})
    assert message in caught.value.message
    assert caught.value.code == "BadArgument"


def test_shown() -> None:
    resource = {"id": compute_id(WORKSPACE, "k8s"), "name": "k8s", **wire.compute_to_wire(DOCUMENT, "here")}
    del resource["properties"]["properties"]["kubeconfig"]
    shown = wire.show_compute(resource)
    assert list(shown) == [
        *("name", "id", "type", "description", "tags", "location", "namespace", "default_instance_type"),
        "instance_types",
    ]
    assert shown["instance_types"] == DOCUMENT["instance_types"]
    size = {"name": "small", "vCPUs": 1.0, "memoryGB": 2.0, "gpus": 0, "gpuClass": None, "origin": "azure"}
    assert list(wire.show_size(size)) == ["name", "v_cp_us", "memory_gb", "gpus", "gpu_class", "origin"]


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("azureml:k8s", "k8s"),
        (f"{WORKSPACE}/computes/K8S", "K8S"),
        (f"azureml:{WORKSPACE}/computes/k8s", "k8s"),
        ("k8s", None),
        ("azureml:k8s:1", None),
        (f"{WORKSPACE}/models/k8s", None),
    ],
)
def test_references(reference: str, name: str | None) -> None:
    assert parse_compute(reference) == name
