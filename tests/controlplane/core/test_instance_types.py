"""Instance types on a cluster: Azure's as pods, a compute's own over them, and their documents."""

from __future__ import annotations

from typing import Any

import pytest

from amphitrite.controlplane.core.capacity.node_capacity import pod_demand, quantity
from amphitrite.controlplane.core.desired import instance_types
from amphitrite.controlplane.core.desired.compute_clusters import (
    Compute,
    PodShape,
    instance_type_document,
    instance_types_from_document,
    pod_shape,
)
from amphitrite.controlplane.core.desired.instance_types import GPU, INSTANCE_TYPES, azure_shapes, shape, shapes
from amphitrite.schemas import documents
from amphitrite.schemas.errors import Error

MINE = PodShape("small-gpu", ((GPU, "1"), ("cpu", "500m"), ("memory", "2Gi")), ((GPU, "1"), ("memory", "2Gi")))
CLUSTER = Compute("k8s", "models", None, (MINE, PodShape("STANDARD_NC6S_V3", (("cpu", "1"),))))


def test_the_default_instance_type_is_azures() -> None:
    found = shape("DefaultInstanceType", CLUSTER)
    assert dict(found.requests) == {"cpu": "100m", "memory": "2Gi"}
    assert dict(found.limits) == {"cpu": "2", "memory": "2Gi"}


@pytest.mark.parametrize("name", sorted(INSTANCE_TYPES))
def test_a_pod_fits_onto_a_node_of_its_size(name: str) -> None:
    promised, found = INSTANCE_TYPES[name], azure_shapes()[name]
    wanted = pod_demand(found)
    assert 0 < wanted["cpu"] < promised.cores or name == "standard_ds1_v2"
    assert wanted["memory"] <= promised.memory_gib * 1024**3
    assert wanted.get(GPU, 0) == promised.gpus
    assert dict(found.limits)["memory"] == dict(found.requests)["memory"]
    assert ("cpu" in dict(found.limits)) == (name == "defaultinstancetype")
    assert bool(found.scheduling) == bool(promised.gpus)


@pytest.mark.parametrize("gpu_class", sorted({t.gpu_class for t in INSTANCE_TYPES.values() if t.gpu_class}))
def test_a_node_with_many_gpus_can_give_away_all_of_them(gpu_class: str) -> None:
    alike = [t for t in INSTANCE_TYPES.values() if t.gpu_class == gpu_class]
    largest = max(alike, key=lambda t: (t.gpus, -t.memory_gib))
    for one in alike:
        if largest.gpus % one.gpus == 0:
            wanted, times = pod_demand(azure_shapes()[one.name.lower()]), largest.gpus // one.gpus
            assert wanted["cpu"] * times < largest.cores, one.name
            assert wanted["memory"] * times < largest.memory_gib * 1024**3, one.name


def test_a_computes_own_types_come_before_azures() -> None:
    assert shape("standard_nc6s_v3", CLUSTER) is CLUSTER.instance_types[1]
    assert shape("small-GPU", CLUSTER) is MINE
    names = [one.name.lower() for one in shapes(CLUSTER)]
    assert names[:2] == ["small-gpu", "standard_nc6s_v3"]
    assert len(names) == len(set(names)) == len(INSTANCE_TYPES) + 1


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("small-gpus", "did you mean small-gpu?"),
        ("Standard_NC6_v3", "did you mean "),
        ("x", "known names are, for example, Standard_DS3_v2, Standard_F4s_v2, Standard_NC6s_v3"),
    ],
)
def test_an_unknown_type_is_refused_with_what_is_near(name: str, hint: str) -> None:
    with pytest.raises(Error, match=f"unknown instance type `{name}` of compute k8s") as caught:
        shape(name, CLUSTER)
    assert (caught.value.hint or "").startswith(hint)


def test_on_one_machine_azures_types_are_known() -> None:
    assert instance_types.find("standard_ds3_V2").cores == 4


OURS: dict[str, Any] = {
    "instance_types": [
        {
            "name": "mig",
            "description": "A seventh of an H100.",
            "resources": {"requests": {"cpu": 2, "memory": "8Gi"}, "limits": {"nvidia.com/mig-1g.10gb": 1}},
            "node_selector": {"pool": "gpu"},
            "tolerations": [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}],
            "affinity": {"nodeAffinity": {}},
            "topology_spread_constraints": [{"maxSkew": 1}],
            "priority_class_name": "serving",
            "runtime_class_name": "nvidia",
            "image_pull_secrets": ["registry"],
            "image": "registry.example/tritonserver@sha256:0",
        }
    ]
}
#: Azure's own examples in shape: a limit of GPUs alone, and none of them.
AZURE: dict[str, Any] = {
    "apiVersion": "amlarc.azureml.com/v1alpha1",
    "kind": "InstanceType",
    "metadata": {"name": "mine", "namespace": "azureml"},
    "spec": {
        "nodeSelector": {"label": "value"},
        "resources": {
            "limits": {"cpu": "1", "nvidia.com/gpu": 1, "memory": "2Gi"},
            "requests": {"cpu": "700m", "memory": "1500Mi", "nvidia.com/gpu": None},
        },
    },
}
AZURE_LIST = {
    "apiVersion": AZURE["apiVersion"],
    "kind": "InstanceTypeList",
    "items": [{"metadata": AZURE["metadata"], "spec": AZURE["spec"]}, AZURE],
}


def test_our_document() -> None:
    (found,) = instance_types_from_document(OURS)
    assert found.requests == (("cpu", "2"), ("memory", "8Gi"), ("nvidia.com/mig-1g.10gb", "1"))
    assert found.limits == (("memory", "8Gi"), ("nvidia.com/mig-1g.10gb", "1"))
    assert found.scheduling == {
        "nodeSelector": {"pool": "gpu"},
        "tolerations": [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {"nodeAffinity": {}},
        "topologySpreadConstraints": [{"maxSkew": 1}],
        "priorityClassName": "serving",
        "runtimeClassName": "nvidia",
        "imagePullSecrets": [{"name": "registry"}],
    }
    assert pod_shape(instance_type_document(found)) == found


def test_azures_documents() -> None:
    (found,) = instance_types_from_document(AZURE)
    assert found.name == "mine"
    assert found.requests == (("cpu", "700m"), ("memory", "1500Mi"), (GPU, "1"))
    assert found.limits == (("cpu", "1"), ("memory", "2Gi"), (GPU, "1"))
    assert found.scheduling == {"nodeSelector": {"label": "value"}}
    assert instance_types_from_document(AZURE_LIST) == (found, found)


@pytest.mark.parametrize(
    ("document", "kind", "message"),
    [
        ({}, "instance_types", "instance_types: required, but missing"),
        ({"instance_types": [{"name": "a"}]}, "instance_types", "instance_types[0].resources: required, but missing"),
        (
            {"instance_types": [{"name": "a", "resources": {}, "nodeSelector": {}}]},
            "instance_types",
            "instance_types[0].nodeSelector: unknown field",
        ),
        (
            {"instance_types": [{"name": "a", "resources": {"limits": {GPU: "half"}}}]},
            "instance_types",
            f'instance_types[0].resources.limits.{GPU}: found "half"; allowed: '
            "a Kubernetes quantity such as 500m, 2 or 4Gi",
        ),
        ({"kind": "InstanceType"}, "azure_instance_type", "apiVersion: required, but missing"),
        ({"items": []}, "azure_instance_type_list", "apiVersion: required, but missing"),
        (
            {**AZURE, "apiVersion": "v1"},
            "azure_instance_type",
            'apiVersion: must be amlarc.azureml.com/v1alpha1; found "v1"',
        ),
    ],
)
def test_wrong_documents(document: dict[str, Any], kind: str, message: str) -> None:
    assert documents.instance_types_kind(document) == kind
    with pytest.raises(Error) as caught:
        instance_types_from_document(document, "types.yml")
    assert message in [str(v) for v in caught.value.violations]
    assert caught.value.code == "InvalidDocument"


def test_quantities_of_azures_types_are_quantities() -> None:
    for one in azure_shapes().values():
        for _, text in (*one.requests, *one.limits):
            assert quantity(text) > 0


@pytest.mark.parametrize("name", ["Standard_NC6s_v2", "Standard_NC24rs_v3", "Standard_NC4as_T4_v3", "Standard_DS3_v2"])
def test_gpus_that_new_releases_of_triton_do_not_know_get_an_older_one(name: str) -> None:
    old = INSTANCE_TYPES[name.lower()].gpu_class in ("P100", "V100")
    assert azure_shapes()[name.lower()].triton_tag == ("24.10-py3" if old else None)
