"""Custom containers with Triton, as in Azure's public example: environment inline and
registered."""

from __future__ import annotations

from azure.ai.ml.constants import ListViewType
from azure.ai.ml.entities import BuildContext, Environment, Model

from .deployments import answered, deploy, invoke, sums
from .endpoints import create
from .step import Here, refused, step

IMAGE = "nvcr.io/nvidia/tritonserver:25.04-py3"
ROUTES = {
    "liveness_route": {"port": 8000, "path": "/v2/health/live"},
    "readiness_route": {"port": 8000, "path": "/v2/health/ready"},
    "scoring_route": {"port": 8000, "path": "/"},
}


def endpoint(here: Here) -> str:
    return f"custom-{here.tag}"


def name(here: Here) -> str:
    return f"triton-{here.tag}"


def register(here: Here, image: str = IMAGE, **more: str) -> Environment:
    wanted = Environment(name=name(here), image=image, inference_config=ROUTES, **more)
    return here.client.environments.create_or_update(wanted)


@step
def environment_create(here: Here) -> None:
    made = register(here, version="1", description="Triton")
    assert (made.name, made.version, made.image, made.description) == (name(here), "1", IMAGE, "Triton")
    assert str(made.id).removeprefix("azureml:").endswith(f"/environments/{name(here)}/versions/1")


@step
def environment_get(here: Here) -> None:
    found = here.client.environments.get(name(here), version="1")
    assert (found.version, found.image, found.os_type.lower()) == ("1", IMAGE, "linux")
    # A dict, an object or one of the SDK's own models, as the release likes it.
    routes = here.rest(f"environments/{name(here)}/versions/1")["properties"]["inferenceConfig"]
    assert routes["readinessRoute"] == {"port": 8000, "path": "/v2/health/ready"}
    assert found.inference_config
    with refused("77"):
        here.client.environments.get(name(here), version="77")


@step
def environment_next_version_and_latest(here: Here) -> None:
    assert register(here, IMAGE.replace("25.04", "25.05")).version == "2"
    assert here.client.environments.get(name(here), label="latest").version == "2"


@step
def environment_list(here: Here) -> None:
    versions = here.client.environments.list(name=name(here))
    assert sorted(one.version for one in versions) == ["1", "2"]
    assert name(here) in {one.name for one in here.client.environments.list()}


@step
def environment_archive_and_restore(here: Here) -> None:
    def listed(view: str) -> list[str]:
        return sorted(one.version for one in here.client.environments.list(name=name(here), list_view_type=view))

    here.client.environments.archive(name(here), version="1")
    assert (listed(ListViewType.ACTIVE_ONLY), listed(ListViewType.ARCHIVED_ONLY)) == (["2"], ["1"])
    here.client.environments.restore(name(here), version="1")
    assert listed(ListViewType.ACTIVE_ONLY) == ["1", "2"]
    here.client.environments.archive(name(here))
    assert name(here) not in {one.name for one in here.client.environments.list()}
    here.client.environments.restore(name(here))
    assert name(here) in {one.name for one in here.client.environments.list()}


@step
def environment_that_would_have_to_be_built_is_refused(here: Here) -> None:
    context = here.files / "context"
    context.mkdir()
    (context / "Dockerfile").write_text("FROM scratch\n")
    with refused("this server builds no images"):
        here.client.environments.create_or_update(
            Environment(name=f"built-{here.tag}", build=BuildContext(path=str(context)))
        )


@step
def custom_container_with_an_inline_environment(here: Here) -> None:
    create(here, endpoint(here))
    inline = Environment(image=IMAGE, inference_config=ROUTES)
    model = Model(path=str(here.files / "three"), type="custom_model")
    made = deploy(here, "blue", model, endpoint(here), environment=inline, model_mount_path="/models")
    assert made.provisioning_state == "Succeeded"
    assert "/environments/CliV2AnonymousEnvironment/versions/" in str(made.environment)
    assert answered(invoke(here, endpoint(here), deployment_name="blue")) == sums(here, "three")


@step
def custom_container_with_a_registered_environment(here: Here) -> None:
    model = Model(path=str(here.files / "three"), type="custom_model")
    found = here.client.environments.get(name(here), version="1")
    made = deploy(here, "blue", model, endpoint(here), environment=found, model_mount_path="/models")
    assert str(made.environment).removeprefix("azureml:").endswith(f"/environments/{name(here)}/versions/1")
    assert answered(invoke(here, endpoint(here), deployment_name="blue")) == sums(here, "three")


@step
def custom_container_of_another_image_is_refused(here: Here) -> None:
    other = Environment(image="docker.io/tensorflow/serving:2.17.0", inference_config=ROUTES)
    model = Model(path=str(here.files / "three"), type="custom_model")
    with refused("docker.io/tensorflow/serving:2.17.0"):
        deploy(here, "other", model, endpoint(here), environment=other, model_mount_path="/models")
    here.client.online_endpoints.begin_delete(endpoint(here))
