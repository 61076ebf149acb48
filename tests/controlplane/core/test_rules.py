"""One line for each message: (what the document says, what is said about it)."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from amphitrite.controlplane.core.desired.compute_clusters import Compute, PodShape
from amphitrite.controlplane.core.rules.compute_rules import check_compute
from amphitrite.controlplane.core.rules.deployment_rules import (
    Bounds,
    ModelFacts,
    Place,
    check_deployment,
    check_endpoint,
)
from amphitrite.controlplane.settings.settings import Limits
from amphitrite.schemas.errors import Violation

MODEL = ModelFacts("m", "1", "triton_model", False, ("model_1",))

ARM = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"
GPUS = Compute("gpus", "models", None, (PodShape("small", (("cpu", "1"),)),), default_instance_type="small")

ENDPOINTS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, []),
    ({"traffic": {"Blue": 100}, "mirror_traffic": {"green": 10}}, []),
    ({"traffic": {"blue": 100, "gren": 0}}, ["traffic.gren: there is no deployment gren"]),
    ({"mirror_traffic": {"red": 0}}, ["mirror_traffic.red: there is no deployment red"]),
    ({"traffic": {"red": 100}}, ["traffic.red: there is no deployment red"]),
    ({"mirror_traffic": {"red": 10}}, ["mirror_traffic.red: there is no deployment red"]),
    ({"auth_mode": "aml_token"}, []),
    ({"public_network_access": "enabled"}, []),
    (
        {"public_network_access": "disabled"},
        ["public_network_access: disabled is not supported; the server listens on the addresses of --host"],
    ),
    ({"identity": {"type": "system_assigned"}}, []),
    ({"identity": {"type": "none"}}, []),
    (
        {"identity": {"type": "user_assigned", "user_assigned_identities": [{"resource_id": "x"}]}},
        ["identity: user-assigned identities are not supported"],
    ),
    ({"properties": {"amphitrite.cors": "https://a.example, http://localhost:3000,http://[::1]:80"}}, []),
    ({"properties": {"amphitrite.cors": "*"}}, []),
    (
        {"properties": {"amphitrite.cors": "a.example, https://a.example/, https://A.example"}},
        [
            f"properties.amphitrite.cors: '{o}' is not a valid origin"
            for o in ("a.example", "https://a.example/", "https://A.example")
        ],
    ),
    (
        {"properties": {"amphitrite.cors": ",".join(f"https://{n:0>32}" for n in range(21))}},
        ["properties.amphitrite.cors: the origins have 840 characters; at most 800"],
    ),
    ({"compute": "azureml:GPUs"}, []),
    ({"compute": f"{ARM}/computes/gpus"}, []),
    ({"compute": "azureml:k8s"}, ["compute: there is no compute k8s"]),
    ({"compute": "azureml:local"}, ["compute: local is not a Kubernetes compute"]),
]

DEPLOYMENTS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, []),
    ({"instance_count": 50}, []),
    ({"instance_count": 51}, ["instance_count: 51 is too many; at most 50"]),
    ({"instance_count": 0}, ["instance_count: 0 is too few; allowed: 1 or more"]),
    ({"instance_type": "standard_nc6S_V3"}, []),
    ({"instance_type": "Standard_X"}, ["instance_type: unknown instance type `Standard_X`"]),
    (
        {"type": "kubernetes", "instance_type": "the-compute-knows"},
        ["type: kubernetes: the endpoint names no compute, and its instances run on this machine (compute local)"],
    ),
    ({"request_settings": {"request_timeout_ms": 180_000, "max_queue_wait_ms": 0}}, []),
    (
        {"request_settings": {"request_timeout_ms": 180_001}},
        ["request_settings.request_timeout_ms: 180001 ms is too long; at most 180000"],
    ),
    ({"request_settings": {"max_queue_wait_ms": 500}}, []),
    ({"environment_variables": {"OMP_NUM_THREADS": "1", "_a1": ""}}, []),
    ({"environment_variables": {"PATH": "x"}}, ["environment_variables.PATH: PATH is reserved for the server"]),
    (
        {"environment_variables": {"AMPHITRITE_X": "x", "1A": "x"}},
        [
            "environment_variables.AMPHITRITE_X: AMPHITRITE_X is reserved for the server",
            "environment_variables.1A: '1A' is not a valid name of an environment variable",
        ],
    ),
    ({"properties": {"amphitrite.scoring_model": "model_1"}}, []),
    (
        {"properties": {"amphitrite.scoring_model": "other"}},
        ["properties.amphitrite.scoring_model: model m:1 contains no model 'other'"],
    ),
    (
        {"code_configuration": {"code": "a"}},
        ["code_configuration: scoring scripts are not supported: Triton serves the model's files"],
    ),
    ({"environment": "azureml:e:1"}, []),
    ({"environment": "azureml:e:1", "model_mount_path": "/m"}, []),
    (
        {"model_mount_path": "/m"},
        ["model_mount_path: instances on this machine have no container to mount the model into"],
    ),
    ({"data_collector": {"collections": {}}}, ["data_collector: data collection is not supported"]),
    ({"app_insights_enabled": False}, []),
    ({"app_insights_enabled": True}, []),
    ({"private_network_connection": True}, ["private_network_connection: private networks are not supported"]),
    (
        {"egress_public_network_access": "disabled"},
        ["egress_public_network_access: disabled is not supported; instances run as processes of this machine"],
    ),
    ({"scale_settings": {"type": "default"}}, []),
    ({"scale_settings": {"type": "target_utilization", "max_instances": 50}}, []),
    (
        {"scale_settings": {"type": "target_utilization", "max_instances": 51}},
        ["scale_settings.max_instances: 51 is too many; at most 50"],
    ),
    ({"scale_settings": {"type": "target_utilization", "min_instances": 0, "idle_timeout": 60}}, []),
    ({"scale_settings": {"type": "target_utilization"}, "properties": {"amphitrite.scale_mode": "recommend"}}, []),
    ({"properties": {"amphitrite.scale_type": "target_utilization", "amphitrite.scale_max_instances": "5"}}, []),
    (
        {"properties": {"amphitrite.scale_max_instances": "5"}},
        ["properties.amphitrite.scale_max_instances: not allowed without type target_utilization"],
    ),
    (
        {
            "properties": {
                "amphitrite.scale_type": "target_utilization",
                "amphitrite.scale_max_instances": "many",
                "amphitrite.scale_mode": "automatic",
                "amphitrite.scale_speed": "1",
            }
        },
        [
            "properties.amphitrite.scale_max_instances: found 'many'; allowed: 1 to 10000",
            "properties.amphitrite.scale_mode: found 'automatic'; allowed: apply, recommend",
            "properties.amphitrite.scale_speed: there is no such setting",
        ],
    ),
    (
        {
            "scale_settings": {"type": "target_utilization", "max_instances": 2},
            "properties": {"amphitrite.scale_max_instances": "3"},
        },
        ["properties.amphitrite.scale_max_instances: scale_settings has max_instances too"],
    ),
    (
        {
            "scale_settings": {"type": "target_utilization", "max_instances": 2},
            "properties": {"amphitrite.scale_min_instances": "3"},
        },
        ["properties.amphitrite.scale_min_instances: must be at most max_instances 2; found 3"],
    ),
    (
        {"type": "kubernetes"},
        ["type: kubernetes: the endpoint names no compute, and its instances run on this machine (compute local)"],
    ),
    (
        {"type": "kubernetes", "resources": {"requests": {"cpu": "1"}}},
        [
            "type: kubernetes: the endpoint names no compute, and its instances run on this machine (compute local)",
            "resources: instances on this machine are processes without resource settings",
        ],
    ),
    ({"properties": {"amphitrite.capacity_policy": "drain-first"}}, []),
    (
        {"properties": {"amphitrite.capacity_policy": "hope"}},
        ["properties.amphitrite.capacity_policy: unknown policy 'hope'; allowed: refuse, wait, drain-first"],
    ),
    ({"properties": {"amphitrite.retry": "lost-requests"}}, []),
    ({"properties": {"amphitrite.retry": "not-run"}}, []),
    (
        {"properties": {"amphitrite.retry": "always"}},
        ["properties.amphitrite.retry: unknown value 'always'; allowed: not-run, lost-requests"],
    ),
]

#: On a cluster that the endpoint names.
KUBERNETES: list[tuple[dict[str, Any], list[str]]] = [
    ({}, []),
    ({"instance_type": None}, []),
    ({"instance_type": "Standard_NC6s_v3", "model_mount_path": "/models/here"}, []),
    ({"model_mount_path": "models"}, ["model_mount_path: models is not an absolute path of a directory"]),
    ({"model_mount_path": "/a/../b"}, ["model_mount_path: /a/../b is not an absolute path of a directory"]),
    ({"instance_type": "smal"}, ["instance_type: unknown instance type `smal` of compute gpus"]),
    (
        {"type": "managed"},
        ["type: managed: the endpoint runs on compute gpus, so its deployments are of type kubernetes"],
    ),
    ({"resources": {"requests": {"cpu": "1", "gpu": "1"}, "limits": {"memory": "2Gi", "gpu": "1"}}}, []),
    (
        {"resources": {"requests": {"cpu": "one", "gpu": "0.5"}, "limits": {"memory": "-1"}}},
        [
            "resources.requests.cpu: 'one' is not a quantity such as 500m, 2 or 4Gi",
            "resources.requests.gpu: 0.5 is not a valid number of gpu",
            "resources.limits.memory: -1 is not a valid number of memory",
        ],
    ),
    (
        {"resources": {"requests": {"cpu": "2", "gpu": "1"}, "limits": {"cpu": "1500m", "gpu": "2"}}},
        [
            "resources.requests.cpu: is more than its limit 1500m",
            "resources.requests.gpu: differs from its limit",
        ],
    ),
    ({"scale_settings": {"type": "target_utilization"}}, []),
    ({"environment": "azureml:e:1"}, []),
]

COMPUTES: list[tuple[dict[str, Any], Compute | None, list[str]]] = [
    ({"in_cluster": True}, None, []),
    ({"kubeconfig": "text"}, None, []),
    ({}, GPUS, []),
    ({}, None, ["kubeconfig: required: neither kubeconfig nor in_cluster is set"]),
    ({"in_cluster": True, "kubeconfig": "text"}, None, ["in_cluster: cannot be set together with kubeconfig"]),
    (
        {"in_cluster": True, "resource_id": "/subscriptions/x"},
        None,
        ["resource_id: a cluster's ARM resource ID is not supported"],
    ),
    ({"namespace": "other"}, GPUS, ["namespace: cannot be changed: the instances run in models"]),
    ({"default_instance_type": "tiny"}, GPUS, ["default_instance_type: unknown instance type `tiny`"]),
    ({"default_instance_type": "Standard_NC6s_v3"}, GPUS, []),
    (
        {
            "instance_types": [
                {"name": "tiny", "resources": {"requests": {"cpu": "x", "nvidia.com/gpu": None}}},
                {"name": "Tiny", "resources": {"limits": {"nvidia.com/mig-1g.10gb": "1.5"}}},
            ],
            "default_instance_type": "tiny",
        },
        GPUS,
        [
            "instance_types[0].resources.requests.cpu: 'x' is not a quantity such as 500m, 2 or 4Gi",
            "instance_types[1].name: Tiny is defined twice",
            "instance_types[1].resources.limits.nvidia.com/mig-1g.10gb: 1.5 is not a valid number of "
            "nvidia.com/mig-1g.10gb",
        ],
    ),
]

MODELS: list[tuple[str | None, ModelFacts | None, list[str]]] = [
    ("azureml:m:2", None, ["model: there is no model m:2"]),
    ("azureml:m@latest", None, ["model: there is no model m:latest"]),
    ("azureml:m@best", None, ["model: azureml:m@best has label 'best'"]),
    ("azureml:m", None, ["model: azureml:m has no version"]),
    (None, None, ["model: required: the deployment names no model"]),
    ("azureml://registries/r/models/m", None, ["model: azureml://registries/r/models/m is not in this workspace"]),
    ("azureml:m:1", replace(MODEL, archived=True), ["model: model m:1 is archived"]),
    (
        "azureml:m:1",
        replace(MODEL, type="custom_model", model_names=()),
        ["model: model m:1 is a custom_model; without an environment, this server serves only triton_model"],
    ),
    (
        "azureml:m:1",
        replace(MODEL, type="mlflow_model", model_names=()),
        ["model: model m:1 is an mlflow_model; this server serves triton_model, and custom_model with an environment"],
    ),
    ("azureml:m:1", replace(MODEL, model_names=()), ["model: model m:1 contains no model directory"]),
]


@pytest.mark.parametrize("retry", [None, "not-run", "lost-requests"])
def test_a_part_of_a_sequence_must_not_run_twice(retry: str | None) -> None:
    model, said = replace(MODEL, sequences=True), {"properties": {"amphitrite.retry": retry}} if retry else {}
    document = {"name": "blue", "instance_type": "Standard_DS3_v2", "model": "azureml:m:1", **said}
    found = check_deployment(document, siblings=0, model=model, bounds=Bounds())
    words = "properties.amphitrite.retry: model m:1 serves sequences, whose requests must not run twice"
    assert [str(v) for v in found] == ([words] if retry == "lost-requests" else [])


def on_cluster(**more: Any) -> list[Violation]:
    document = {"name": "blue", "type": "kubernetes", "instance_type": "small", "model": "azureml:m:1", **more}
    place = Place(GPUS, chosen=True)
    return check_deployment(document, siblings=0, model=MODEL, bounds=Bounds(), place=place)


def compute(more: dict[str, Any], former: Compute | None) -> list[Violation]:
    return check_compute({"name": "gpus", "namespace": "models", **more}, former=former)


def deployment(siblings: int = 0, facts: ModelFacts | None = MODEL, **more: Any) -> list[str]:
    document = {"name": "blue", "instance_type": "Standard_DS3_v2", "model": "azureml:m:1", **more}
    return [str(found) for found in check_deployment(document, siblings=siblings, model=facts, bounds=Bounds())]


@pytest.mark.parametrize(("more", "messages"), ENDPOINTS)
def test_endpoints(more: dict[str, Any], messages: list[str]) -> None:
    found = check_endpoint({"name": "ep", **more}, deployments=["blue", "green"], computes=["gpus"])
    assert [str(violation) for violation in found] == messages


def test_a_stored_share_of_0_may_outlive_its_deployment() -> None:
    """Earlier releases stored such shares, and clients write back what they read."""
    gone = {"name": "ep", "traffic": {"blue": 100, "Red": 0}}
    assert check_endpoint(gone, deployments=["blue"], former={"name": "ep", "traffic": {"red": 0}}) == []
    assert len(check_endpoint(gone, deployments=["blue"], former={"name": "ep", "traffic": {"blue": 100}})) == 1


@pytest.mark.parametrize(("more", "messages"), DEPLOYMENTS)
def test_deployments(more: dict[str, Any], messages: list[str]) -> None:
    assert deployment(**more) == messages


@pytest.mark.parametrize(("more", "messages"), KUBERNETES)
def test_deployments_on_a_cluster(more: dict[str, Any], messages: list[str]) -> None:
    assert [str(found) for found in on_cluster(**more)] == messages


@pytest.mark.parametrize(("more", "former", "messages"), COMPUTES)
def test_computes(more: dict[str, Any], former: Compute | None, messages: list[str]) -> None:
    assert [str(found) for found in compute(more, former)] == messages


def test_managed_deployments_run_on_a_cluster_that_the_server_brings_along() -> None:
    place = Place(Compute("kubernetes", "models", None))
    document = {"name": "blue", "instance_type": "Standard_NC6s_v3", "model": "azureml:m:1", "model_mount_path": "/m"}
    assert check_deployment(document, siblings=0, model=MODEL, bounds=Bounds(), place=place) == []
    document["type"] = "kubernetes"
    found = check_deployment(document, siblings=0, model=MODEL, bounds=Bounds(), place=place)
    text = "type: kubernetes: the endpoint names no compute, and its instances run on compute kubernetes"
    assert [str(violation) for violation in found] == [text]


@pytest.mark.parametrize(
    ("former", "compute", "messages"),
    [
        ({}, None, []),
        ({"compute": f"{ARM}/computes/gpus"}, "azureml:GPUS", []),
        ({}, "azureml:gpus", ["compute: cannot be changed after creation; the current value is not set"]),
        (
            {"compute": "azureml:a-b"},
            "azureml:gpus",
            ["compute: cannot be changed after creation; the current value is azureml:a-b"],
        ),
        (
            {"compute": "azureml:gpus"},
            None,
            ["compute: cannot be changed after creation; the current value is azureml:gpus"],
        ),
    ],
)
def test_an_endpoint_stays_on_its_compute(former: dict[str, Any], compute: str | None, messages: list[str]) -> None:
    document = {"name": "ep", "compute": compute}
    found = check_endpoint(document, deployments=[], computes=["gpus"], former={"name": "ep", **former})
    assert [str(violation) for violation in found] == messages


@pytest.mark.parametrize(("reference", "facts", "messages"), MODELS)
def test_models(reference: str | None, facts: ModelFacts | None, messages: list[str]) -> None:
    assert deployment(facts=facts, model=reference) == messages


def test_an_endpoint_has_so_many_deployments() -> None:
    assert deployment(siblings=19) == []
    assert deployment(siblings=20) == ["name: the endpoint has 20 deployments already; at most 20"]


def test_a_limit_says_how_to_raise_it_and_each_can_be_raised() -> None:
    document = {"name": "blue", "instance_type": "Standard_DS3_v2", "instance_count": 3}
    found = check_deployment(document, siblings=0, model=MODEL, bounds=Bounds(instances_per_deployment=2))
    assert found[0].hint == (
        "the limit instances_per_deployment is 2; "
        "raise it with ML_LIMIT_INSTANCES_PER_DEPLOYMENT and restart the server"
    )
    assert Limits.variable("instances_per_deployment") == "ML_LIMIT_INSTANCES_PER_DEPLOYMENT"
    assert {field.name for field in fields(Bounds)} <= {field.name for field in fields(Limits)}


def test_every_refusal_says_what_to_do() -> None:
    found = [v for more, _ in ENDPOINTS for v in check_endpoint({"name": "ep", **more}, deployments=[])]
    for more, _ in DEPLOYMENTS:
        document = {"name": "blue", "instance_type": "Standard_DS3_v2", "model": "azureml:m:1", **more}
        found += check_deployment(document, siblings=20, model=None, bounds=Bounds())
    found += [v for more, _ in KUBERNETES for v in on_cluster(**more)]
    found += [v for more, former, _ in COMPUTES for v in compute(more, former)]
    assert [violation.message for violation in found if not violation.hint] == []
