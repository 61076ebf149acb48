"""Environments of deployments: what becomes a container, and one line for each reason why nothing
does."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from amphitrite.controlplane.core.desired import images
from amphitrite.controlplane.core.desired.containers import Container, ModelFiles, resolve_container
from amphitrite.controlplane.core.desired.resources import (
    LOCAL,
    ModelReference,
    PodSettings,
    stored_model,
    workload_spec,
)
from amphitrite.controlplane.core.planning.routing import scoring_path
from amphitrite.schemas.errors import Violation

NVIDIA = "nvcr.io/nvidia/tritonserver:25.04-py3"
OWN = "acr.azurecr.io/azureml-examples/triton-cc:latest"
#: ``path: ./models/model_1`` of the public example, and ``path: ./models``.
ONE = ModelFiles("m", "1", "model_1", "", ("model_1",))
MANY = ModelFiles("m", "1", "models", "models", ("a", "b"))
NONE = ModelFiles("m", "1", "half_plus_two", None, (), (Violation(("path",), "it contains no model directory"),))


def routes(
    live: str = "/v2/health/live", ready: str = "/v2/health/ready", score: str = "/", ports: tuple[int, ...] = (8000,)
) -> dict[str, Any]:
    one, two, three = ports * 3 if len(ports) == 1 else ports
    return {
        "liveness_route": {"path": live, "port": one},
        "readiness_route": {"path": ready, "port": two},
        "scoring_route": {"path": score, "port": three},
    }


def decided(
    environment: dict[str, Any], *, files: ModelFiles = ONE, cluster: bool = False, **document: Any
) -> tuple[Container | None, list[Violation]]:
    return resolve_container(
        document, environment, files, on_cluster=cluster, local_images=["azureml-examples/triton-cc"]
    )


PUBLIC = Container(OWN, 8000, "/v2/health/live", "/v2/health/ready", "/", "/models", "model_1", "")
BY_DEFAULT = "/var/azureml-app/azureml-models/m/1"

#: (environment, where and of what, the container)
CONTAINERS: list[tuple[dict[str, Any], dict[str, Any], Container]] = [
    # The public example, where the operator says that its image is Triton; on a cluster its own
    # command knows.
    ({"image": OWN, "inference_config": routes()}, {"model_mount_path": "/models"}, PUBLIC),
    (
        {"image": OWN, "inference_config": routes()},
        {"model_mount_path": "/models/", "cluster": True},
        Container(OWN, 8000, "/v2/health/live", "/v2/health/ready", "/", "/models", "model_1", None),
    ),
    # NVIDIA's own: its routes are known, and on a cluster Triton has to be started.
    (
        {"image": NVIDIA},
        {"files": MANY, "cluster": True},
        Container(NVIDIA, 8000, "/v2/health/live", "/v2/health/ready", "/", BY_DEFAULT, "models", "models"),
    ),
    (
        {
            "image": "mirror:5000/tritonserver@sha256:" + "ab" * 32,
            "os_type": "linux",
            "inference_config": routes("/v2", "/v2/models/model_1/ready", "/v2/models/model_1/infer", (9000,)),
        },
        {},
        Container(
            "mirror:5000/tritonserver@sha256:" + "ab" * 32,
            9000,
            "/v2",
            "/v2/models/model_1/ready",
            "/v2/models/model_1/infer",
            BY_DEFAULT,
            "model_1",
            "",
        ),
    ),
    # Azure's example for gRPC: its scoring route has Triton's port for it.
    (
        {"image": NVIDIA, "inference_config": routes(ports=(8000, 8000, 8001))},
        {"files": MANY, "cluster": True},
        Container(NVIDIA, 8000, "/v2/health/live", "/v2/health/ready", "/", BY_DEFAULT, "models", "models"),
    ),
    # Anything at all, on a cluster.
    (
        {
            "image": "docker.io/tensorflow/serving:latest",
            "inference_config": routes("/v1/models/h", "/v1/models/h", "/v1/models/h:predict", (8501,)),
        },
        {"files": NONE, "cluster": True, "environment_variables": {"MODEL_NAME": "h"}},
        Container(
            "docker.io/tensorflow/serving:latest",
            8501,
            "/v1/models/h",
            "/v1/models/h",
            "/v1/models/h:predict",
            BY_DEFAULT,
            "half_plus_two",
            None,
        ),
    ),
]


@pytest.mark.parametrize(("environment", "given", "container"), CONTAINERS)
def test_containers(environment: dict[str, Any], given: dict[str, Any], container: Container) -> None:
    assert decided(environment, **given) == (container, [])


OTHER = {"image": "docker.io/tensorflow/serving:latest", "inference_config": routes()}

REFUSALS: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    (
        OTHER,
        {},
        [
            "environment.image: this machine runs no containers; image docker.io/tensorflow/serving:latest is not a "
            "Triton image"
        ],
    ),
    # By its last part alone is a repository NVIDIA's.
    (
        {"image": "tritonserver/mine:1", "inference_config": routes()},
        {},
        ["environment.image: this machine runs no containers; image tritonserver/mine:1 is not a Triton image"],
    ),
    (
        {"image": "{{acr}}.azurecr.io/x:1", "inference_config": routes()},
        {"cluster": True},
        ["environment.image: '{{acr}}.azurecr.io/x:1' is not a valid image reference"],
    ),
    ({}, {}, ["environment.image: required: the environment names no image"]),
    (
        {"image": NVIDIA, "conda_file": "name: x"},
        {},
        ["environment.conda_file: this server builds no images, so it cannot use a conda environment"],
    ),
    ({"build": {"path": "x"}}, {"cluster": True}, ["environment.build: this server builds no images"]),
    ({"image": NVIDIA, "os_type": "windows"}, {}, ["environment.os_type: this server runs Linux containers only"]),
    (
        {"image": OWN},
        {"cluster": True},
        ["environment.inference_config: required for an image that is not named tritonserver"],
    ),
    (
        {"image": NVIDIA, "inference_config": routes(ports=(8000, 8000, 8002))},
        {},
        ["environment.inference_config: the routes have different ports (liveness 8000, readiness 8000, scoring 8002)"],
    ),
    (
        {"image": NVIDIA, "inference_config": routes("/", "/health", "/score")},
        {},
        [
            "environment.inference_config.liveness_route.path: Triton does not answer GET /",
            "environment.inference_config.readiness_route.path: Triton does not answer GET /health",
            "environment.inference_config.scoring_route.path: Triton does not answer POST /score",
        ],
    ),
    (
        {"image": OWN, "inference_config": routes("live", "/a b", "/score?x=1")},
        {"cluster": True},
        [
            "environment.inference_config.liveness_route.path: 'live' is not a valid URL path",
            "environment.inference_config.readiness_route.path: '/a b' is not a valid URL path",
            "environment.inference_config.scoring_route.path: '/score?x=1' is not a valid URL path",
        ],
    ),
    ({"image": NVIDIA}, {"files": NONE}, ["model: model m:1 is not a Triton model repository: it contains no model"]),
    ({"image": NVIDIA}, {"files": ModelFiles("m", "1", "a:b", "")}, ["model: the directory name 'a:b' cannot be mou"]),
    (
        {"image": NVIDIA},
        {"model_mount_path": "models"},
        ["model_mount_path: models is not an absolute path of a directory"],
    ),
    ({"image": NVIDIA}, {"model_mount_path": "/a:b"}, ["model_mount_path: /a:b: a mount path cannot contain a colon"]),
    (
        {"image": NVIDIA},
        {"environment_variables": {"AZUREML_MODEL_DIR": "/x"}},
        ["environment_variables.AZUREML_MODEL_DIR: AZUREML_MODEL_DIR is set by the server"],
    ),
    (
        {"image": NVIDIA, "inference_config": routes(score="/v2/models/model_1/infer")},
        {"properties": {"amphitrite.scoring_model": "model_1"}},
        ["properties.amphitrite.scoring_model: the environment's scoring route /v2/models/model_1/infer already"],
    ),
]


@pytest.mark.parametrize(("environment", "given", "messages"), REFUSALS)
def test_what_cannot_be_run_is_refused_with_what_to_do(
    environment: dict[str, Any], given: dict[str, Any], messages: list[str]
) -> None:
    container, found = decided(environment, **given)
    assert container is None
    assert len(found) == len(messages)
    assert all(str(violation).startswith(message) for violation, message in zip(found, messages, strict=True))
    assert all(violation.hint for violation in found)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("tritonserver", ("tritonserver", None, None, True)),
        (NVIDIA, ("nvcr.io/nvidia/tritonserver", "25.04-py3", None, True)),
        ("localhost:5000/a/tritonserver:x", ("localhost:5000/a/tritonserver", "x", None, True)),
        ("a/triton-server:x@sha256:" + "0" * 64, ("a/triton-server", "x", "sha256:" + "0" * 64, False)),
        *((text, None) for text in ("", "A/b", "a/b:", "a:b:c", "a@sha256:12", "a b", "https://a/b", "a/" * 300 + "b")),
    ],
)
def test_references_to_images(text: str, parts: tuple[Any, ...] | None) -> None:
    found = images.parse(text)
    assert (found and (found.repository, found.tag, found.digest, found.is_triton)) == parts


@pytest.mark.parametrize(
    ("name", "matches"),
    [("triton-cc", True), ("acr.azurecr.io/*", True), ("azureml-examples/*", True), ("triton", False), ("cc", False)],
)
def test_names_of_own_images(name: str, matches: bool) -> None:
    found = images.parse(OWN)
    assert found is not None
    assert found.matches([name]) == matches


@pytest.mark.parametrize(
    ("path", "names", "chosen", "want"),
    [
        ("/", ("a",), None, "/v2/models/a/infer"),
        ("/", ("a", "b"), "b", "/v2/models/b/infer"),
        ("/", ("a", "b"), None, None),
        ("/", (), None, "/"),
        ("/score", ("a", "b"), None, "/score"),
    ],
)
def test_where_a_post_to_the_scoring_address_goes(
    path: str, names: tuple[str, ...], chosen: str | None, want: str | None
) -> None:
    container = Container(OWN, 8000, "/l", "/r", path, "/models", "f")
    model = ModelReference("m", "1", "d", names)
    workload = workload_spec("ep", "blue", model, "any", {}, "k8s", PodSettings(), container)
    assert scoring_path(workload, chosen)[0] == want


def test_a_workload_without_container_keeps_its_name() -> None:
    model = ModelReference("m", "1", "d", ("a",))
    plain = workload_spec("ep", "blue", model, "any", {"A": "b"})
    assert plain.name == "ep-blue-2357023e"
    assert workload_spec("ep", "blue", model, "any", {"A": "b"}, LOCAL, None, PUBLIC).name != plain.name


def test_what_was_resolved_is_read_again() -> None:
    model = {"name": "m", "version": "1", "digest": "d", "model_names": ["a"]}
    assert stored_model(model) == (ModelReference("m", "1", "d", ("a",)), None)
    assert stored_model({**model, "container": asdict(PUBLIC)})[1] == PUBLIC
