"""Endpoints and deployments of the kind ``kubernetes``, with a server that has a cluster
attached."""

from __future__ import annotations

from typing import Any

from azure.ai.ml.entities import (
    DefaultScaleSettings,
    KubernetesOnlineDeployment,
    KubernetesOnlineEndpoint,
    ResourceRequirementsSettings,
    ResourceSettings,
    TargetUtilizationScaleSettings,
)
from azure.core.exceptions import ResourceNotFoundError

from .step import Here, refused, step


def name(here: Here) -> str:
    return f"k8s-{here.tag}"


def endpoint(here: Here, **more: Any) -> KubernetesOnlineEndpoint:
    wanted = KubernetesOnlineEndpoint(name=name(here), compute="k8s", auth_mode="key", **more)
    return here.clusters.online_endpoints.begin_create_or_update(wanted).result()


def deployment(here: Here, **more: Any) -> KubernetesOnlineDeployment:
    wanted = KubernetesOnlineDeployment(name="blue", endpoint_name=name(here), model="azureml:m:1", **more)
    return here.clusters.online_deployments.begin_create_or_update(wanted).result()


@step
def kubernetes_endpoint_create(here: Here) -> None:
    made = endpoint(here, tags={"a": "b"})
    assert (type(made), made.provisioning_state) == (KubernetesOnlineEndpoint, "Succeeded")
    assert made.compute.removeprefix("azureml:").endswith("/computes/k8s")
    assert here.clusters.online_endpoints.get(name(here)).kind == "K8S"


@step
def kubernetes_deployment_create(here: Here) -> None:
    asked = ResourceSettings(cpu="100m", memory="1Gi")
    limits = ResourceSettings(cpu="1", memory="2Gi")
    made = deployment(here, instance_count=1, resources=ResourceRequirementsSettings(requests=asked, limits=limits))
    assert (type(made), made.provisioning_state, made.instance_count) == (KubernetesOnlineDeployment, "Succeeded", 1)
    assert (made.resources.requests.cpu, made.resources.limits.memory) == ("100m", "2Gi")


@step
def h18_a_deployment_without_resources_is_complete(here: Here) -> None:
    made = deployment(here, instance_type="small", instance_count=2)
    assert (made.instance_type, made.instance_count) == ("small", 2)
    found = here.clusters.online_deployments.get("blue", name(here))
    assert (found.instance_type, found.provisioning_state) == ("small", "Succeeded")


@step
def h18_an_update_keeps_what_the_sdk_does_not_read(here: Here) -> None:
    """The SDK reads no mirror traffic of a Kubernetes endpoint, so what it sends back has none."""
    found = here.clusters.online_endpoints.get(name(here))
    found.traffic = {"blue": 100}
    made = here.clusters.online_endpoints.begin_create_or_update(found).result()
    assert made.traffic == {"blue": 100}
    assert here.clusters.online_endpoints.get(name(here)).compute == found.compute


@step
def kubernetes_scale_settings(here: Here) -> None:
    """What the SDK sends back is the number in force: nothing changes by that. What it does not
    know is a property."""
    settings = TargetUtilizationScaleSettings(
        min_instances=1, max_instances=3, polling_interval=10, target_utilization_percentage=60
    )
    more = {"instance_type": "small", "properties": {"amphitrite.scale_mode": "recommend"}}
    made = deployment(here, scale_settings=settings, instance_count=2, **more)
    assert made.scale_settings == settings
    assert (made.instance_count, made.properties["amphitrite.scale_mode"]) == (2, "recommend")
    made = deployment(here, scale_settings=settings, instance_type="small")
    found = here.clusters.online_deployments.get("blue", name(here))
    found.tags = {"a": "b"}
    again = here.clusters.online_deployments.begin_create_or_update(found).result()
    assert (again.scale_settings, again.instance_count, again.tags) == (settings, made.instance_count, {"a": "b"})
    back = deployment(here, scale_settings=DefaultScaleSettings(), instance_type="small", instance_count=2)
    assert (back.scale_settings.type, back.instance_count) == ("default", 2)


@step
def kubernetes_lists(here: Here) -> None:
    assert name(here) in {one.name for one in here.clusters.online_endpoints.list()}
    [found] = here.clusters.online_deployments.list(name(here))
    assert isinstance(found, KubernetesOnlineDeployment)


@step
def kubernetes_logs_and_keys(here: Here) -> None:
    assert "server ready" in here.clusters.online_deployments.get_logs("blue", name(here), lines=10)
    assert here.clusters.online_endpoints.get_keys(name(here)).primary_key


@step
def kubernetes_refusals(here: Here) -> None:
    with refused("nowhere"):
        elsewhere = KubernetesOnlineEndpoint(name=f"x-{name(here)}", compute="nowhere", auth_mode="key")
        here.clusters.online_endpoints.begin_create_or_update(elsewhere).result()
    with refused("huge"):
        deployment(here, instance_type="huge", instance_count=1)


@step
def kubernetes_delete(here: Here) -> None:
    here.clusters.online_endpoints.begin_delete(name(here)).result()
    try:
        here.clusters.online_endpoints.get(name(here))
    except ResourceNotFoundError:
        return
    raise AssertionError("it is still there")
