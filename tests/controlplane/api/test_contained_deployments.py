"""Deployments with an environment over HTTP: what is pinned and shown, and one line for each
refusal of a reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from amphitrite.controlplane.core.desired.compute_clusters import Compute
from amphitrite.controlplane.core.desired.containers import Container

from .conftest import BLOBS, BLOCK_BLOB, URI, WS, World, opened

BLUE = f"{WS}/onlineEndpoints/ep1/deployments/blue"
NVIDIA = "nvcr.io/nvidia/tritonserver:25.04-py3"
ENVIRONMENT = f"{WS}/environments/triton/versions/1"
ROUTES = {f"{name}_route": {"path": f"/{name}", "port": 5001} for name in ("liveness", "readiness", "scoring")}


def prepared(world: World) -> World:
    """A custom_model ``c`` as the public example uploads it, and environment ``triton`` in two
    versions."""
    url = f"{BLOBS}/LocalUpload/c/model_1/1/model.onnx"
    assert world.client.put(url, content=b"onnx", headers=BLOCK_BLOB).status_code == 201
    body = {"properties": {"modelType": "custom_model", "modelUri": f"{URI}/LocalUpload/c/model_1"}}
    assert world.client.put(f"{WS}/models/c/versions/1", json=body).status_code == 201
    for version, image in enumerate((NVIDIA, "acr.io/tf/serving:1"), start=1):
        document = {"image": image, "inference_config": ROUTES if version == 2 else None}
        world.services.environments.put_version("triton", str(version), document, now=world.now[0])
    assert world.endpoint().status_code == 201
    return world


def create(world: World, environment: str = ENVIRONMENT, model: str = "azureml:c:1", **properties: Any) -> Any:
    return world.deployment(model=model, environmentId=environment, **properties)


def test_what_was_resolved_is_kept_and_shown(world: World) -> None:
    answer = create(prepared(world), modelMountPath="/models")
    assert answer.status_code == 201, answer.text
    shown = world.client.get(BLUE).json()["properties"]
    assert (shown["environmentId"], shown["modelMountPath"]) == (ENVIRONMENT, "/models")
    (wanted,) = world.store.load_world().deployments
    assert wanted.workload.model.model_names == ("model_1",)
    assert wanted.workload.container == Container(
        NVIDIA, 8000, "/v2/health/live", "/v2/health/ready", "/", "/models", "model_1", ""
    )


def test_an_answer_put_again_changes_nothing_and_another_mount_path_replaces(world: World) -> None:
    before = create(prepared(world))
    again = world.client.put(BLUE, json=world.client.get(BLUE).json())
    assert (again.status_code, again.headers["ETag"]) == (200, before.headers["ETag"])
    (first,) = world.store.load_world().deployments
    assert create(world, modelMountPath="/models").status_code == 200
    (second,) = world.store.load_world().deployments
    assert first.workload.name != second.workload.name


def test_a_repository_is_found_in_the_directory_too(world: World) -> None:
    prepared(world).model()  # LocalUpload/m/models: a repository with model_1
    assert create(world, model="azureml:m:1", properties={"amphitrite.scoring_model": "model_1"}).status_code == 201
    (wanted,) = world.store.load_world().deployments
    assert wanted.workload.container is not None
    assert (wanted.workload.container.folder, wanted.workload.container.repository) == ("models", "models")


def test_a_single_model_registered_as_triton_model_is_mounted_under_its_name(world: World) -> None:
    """Azure ML's notebook for custom containers: the directory of one model as a triton_model."""
    body = {"properties": {"modelType": "triton_model", "modelUri": f"{URI}/LocalUpload/c/model_1"}}
    made = prepared(world).client.put(f"{WS}/models/t/versions/1", json=body)
    assert (made.status_code, made.json()["properties"]["modelUri"]) == (201, body["properties"]["modelUri"])
    assert made.json()["properties"]["notes"] == [
        "model_1 is the directory of a single model; the directory above it is taken as the model repository"
    ]
    shown = world.client.get(f"{WS}/models/t/versions/1").json()
    assert "notes" not in shown["properties"]
    assert world.client.put(f"{WS}/models/t/versions/1", json=made.json()).status_code == 200
    assert create(world, model="azureml:t:1", modelMountPath="/models").status_code == 201
    (wanted,) = world.store.load_world().deployments
    container = wanted.workload.container
    assert container is not None and wanted.workload.model.model_names == ("model_1",)
    assert (container.mount, container.repository_path) == ("/models", "/models")
    # Without an environment it is a repository like any other.
    assert world.deployment("green", model="azureml:t:1").status_code == 201


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ("azureml:triton:3", "environment: there is no environment triton:3"),
        ("azureml:other@latest", "environment: there is no environment other:latest"),
        ("azureml:triton", 'environment: found "azureml:triton"; allowed: write azureml:<name>:<version>'),
        ("azureml:triton@best", "environment: azureml:triton@best: the only label is latest"),
        (f"{WS}/models/c/versions/1", 'environment: found "/subscriptions/local/'),
        (
            "azureml://registries/azureml/environments/sklearn-1.5/labels/latest",
            "environment: azureml://registries/azureml/environments/sklearn-1.5/labels/latest: Azure's registries of "
            "curated environments are not available",
        ),
        ("azureml:AzureML-sklearn-1.0:1", "environment: azureml:AzureML-sklearn-1.0:1: Azure's registries of curated"),
        (
            "azureml:triton@latest",
            "environment.image: this machine runs no containers; image acr.io/tf/serving:1 is not a Triton image",
        ),
    ],
)
def test_what_leads_to_no_container_is_refused_with_what_to_do(world: World, environment: str, message: str) -> None:
    error = create(prepared(world), environment).json()["error"]
    assert error["code"] == "InvalidDocument"
    assert error["message"].startswith(message)
    assert '"hint"' in str(error).replace("'", '"')
    assert world.store.load_world().deployments == ()


def test_an_archived_environment_is_refused_to_new_users_and_kept_by_old_ones(world: World) -> None:
    assert create(prepared(world)).status_code == 201
    environments = world.services.environments
    environments.put_version("triton", "1", {"image": NVIDIA}, is_archived=True, now=world.now[0])
    assert create(world, modelMountPath="/m").status_code == 200
    refused = world.deployment("green", model="azureml:c:1", environmentId=ENVIRONMENT).json()["error"]
    assert refused["message"] == "environment: environment triton:1 is archived"


def test_everything_wrong_is_said_at_once(world: World) -> None:
    scripts = {"codeConfiguration": {"codeId": f"{WS}/codes/x/versions/1", "scoringScript": "score.py"}}
    found = create(prepared(world), "azureml:triton:2", modelMountPath="m", **scripts).json()["error"]["details"]
    assert {detail["target"] for detail in found} == {"environment.image", "model_mount_path", "code_configuration"}


def test_without_environment_a_custom_model_is_refused_with_what_to_do(world: World) -> None:
    error = prepared(world).deployment(model="azureml:c:1").json()["error"]
    assert (
        error["message"]
        == "model: model c:1 is a custom_model; without an environment, this server serves only triton_model"
    )


def test_images_that_the_operator_calls_triton(tmp_path: Path) -> None:
    with opened(tmp_path / "home", ML_LOCAL_TRITON_IMAGES="x, tf/*") as world:
        document = {"image": "acr.io/tf/serving:1"}
        prepared(world).services.environments.put_version("own", "1", document, now=world.now[0])
        assert create(world, "azureml:own:1").status_code == 201


def test_on_a_cluster_any_image_runs_by_its_own_command(tmp_path: Path) -> None:
    with opened(tmp_path / "home", Compute("kubernetes", "models", None)) as world:
        assert create(prepared(world), "azureml:triton:2").status_code == 201
        (wanted,) = world.store.load_world().deployments
        container = wanted.workload.container
        assert container is not None
        assert (container.port, container.scoring_path, container.repository) == (5001, "/scoring", None)
        assert container.mount == "/var/azureml-app/azureml-models/c/1/model_1"


def test_an_environment_in_use_is_not_deleted(world: World) -> None:
    assert create(prepared(world)).status_code == 201
    for path in (ENVIRONMENT, ENVIRONMENT.removesuffix("/versions/1")):
        refused = world.client.delete(path)
        assert (refused.status_code, refused.json()["error"]["message"]) == (
            409,
            "environment triton:1 is used by ep1/blue",
        )
    assert world.client.delete(ENVIRONMENT.replace("/1", "/2")).status_code == 200
