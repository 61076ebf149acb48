"""Deployments of models that Triton serves: create, find, traffic and requests to them, logs."""

from __future__ import annotations

import json
from typing import Any

import requests
from azure.ai.ml.entities import (
    ManagedOnlineDeployment,
    Model,
)

from . import endpoints
from .endpoints import name
from .step import Here, refused, step


def wanted(here: Here, deployment: str, model: Any, endpoint: str = "", **more: Any) -> ManagedOnlineDeployment:
    settings = {"instance_type": "Standard_DS3_v2", "instance_count": 1, **more}
    return ManagedOnlineDeployment(name=deployment, endpoint_name=endpoint or name(here), model=model, **settings)


def deploy(here: Here, *arguments: Any, **more: Any) -> ManagedOnlineDeployment:
    return here.client.online_deployments.begin_create_or_update(wanted(here, *arguments, **more)).result()


def get(here: Here, deployment: str = "blue") -> ManagedOnlineDeployment:
    return here.client.online_deployments.get(deployment, name(here))


def put(here: Here, deployment: ManagedOnlineDeployment) -> ManagedOnlineDeployment:
    return here.client.online_deployments.begin_create_or_update(deployment).result()


def traffic(here: Here, **shares: int) -> dict[str, int]:
    endpoint = endpoints.get(here)
    endpoint.traffic = shares
    return endpoints.put(here, endpoint).traffic


def registered(here: Here, path: str = "one") -> Model:
    made = Model(name=f"serve-{path}-{here.tag}", version="1", type="triton_model", path=str(here.files / path))
    return here.client.models.create_or_update(made)


def invoke(here: Here, endpoint: str = "", **more: Any) -> Any:
    """As the first call of a process; what the SDK carries over from earlier ones is h08."""
    from azure.ai.ml.constants._endpoint import EndpointInvokeFields

    with here.invoking:
        EndpointInvokeFields.DEFAULT_HEADER.pop(EndpointInvokeFields.MODEL_DEPLOYMENT, None)
        return _invoke(here, endpoint, **more)


def _invoke(here: Here, endpoint: str = "", **more: Any) -> Any:
    request = str(here.files / "request.json")
    return json.loads(here.client.online_endpoints.invoke(endpoint or name(here), request_file=request, **more))


def sums(here: Here, path: str) -> list[float]:
    """What the model of this directory answers to the request."""
    return [value + here.adds[path] for value in (1, 2, 3, 4)]


def answered(answer: dict[str, Any]) -> list[float]:
    values: list[float] = answer["outputs"][0]["data"]
    return values


@step
def deployment_create_of_a_registered_model(here: Here) -> None:
    model = registered(here)
    made = deploy(here, "blue", model, tags={"color": "blue"}, environment_variables={"A": "b"})
    assert (made.name, made.endpoint_name, made.provisioning_state) == ("blue", name(here), "Succeeded")
    assert (made.instance_type, made.instance_count, made.type.lower()) == ("Standard_DS3_v2", 1, "managed")
    assert str(made.model).removeprefix("azureml:") == model.id


@step
def deployment_create_of_an_inline_model(here: Here) -> None:
    model = Model(path=str(here.files / "two"), type="triton_model")
    made = deploy(here, "green", model)
    assert made.provisioning_state == "Succeeded"
    anonymous = str(made.model).split("/models/")[1].split("/")[0]
    assert anonymous not in {listed.name for listed in here.client.models.list()}


@step
def deployment_get(here: Here) -> None:
    found = get(here)
    assert (found.tags, found.environment_variables["A"]) == ({"color": "blue"}, "b")
    assert (found.scale_settings.type, found.app_insights_enabled) == ("default", False)
    liveness, readiness, settings = map(vars, (found.liveness_probe, found.readiness_probe, found.request_settings))
    assert (liveness["period"], readiness["period"]) == (10, 2)
    assert settings["request_timeout_ms"] == 5000
    with refused("purple"):
        get(here, "purple")


@step
def deployment_list(here: Here) -> None:
    assert sorted(one.name for one in here.client.online_deployments.list(name(here))) == ["blue", "green"]
    with refused("ResourceNotFound"):
        list(here.client.online_deployments.list("nothing-there"))


@step
def h06_deployments_without_traffic_are_shown_as_zero(here: Here) -> None:
    assert endpoints.get(here).traffic == {"blue": 0, "green": 0}


@step
def h09_a_refusal_of_a_request_is_told_in_words(here: Here) -> None:
    with refused(f"no deployment of endpoint '{name(here)}' has traffic"):
        invoke(here)
    with refused("nothing-there"):
        invoke(here, "nothing-there")


@step
def h09_a_refusal_of_the_model_is_told_in_its_words(here: Here) -> None:
    path = here.files / "wrong.json"
    path.write_text(json.dumps({"inputs": [{"name": "X", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}]}))
    with here.invoking, refused("unexpected shape for input 'X'"):
        here.client.online_endpoints.invoke(name(here), request_file=str(path), deployment_name="green")


@step
def h05_traffic_of_names_in_any_case_and_no_others(here: Here) -> None:
    assert traffic(here, BLUE=100, green=0) == {"blue": 100}
    assert endpoints.get(here).traffic == {"blue": 100, "green": 0}
    with refused("purple"):
        traffic(here, blue=50, purple=50)
    with refused("50"):
        traffic(here, blue=50)
    assert endpoints.get(here).traffic == {"blue": 100, "green": 0}


@step
def invoke_by_traffic(here: Here) -> None:
    assert answered(invoke(here)) == sums(here, "one")


@step
def invoke_by_name(here: Here) -> None:
    assert answered(invoke(here, deployment_name="green")) == sums(here, "two")
    with refused("Deployment name purple not found for this endpoint"):
        invoke(here, deployment_name="purple")


@step
def openapi_document_with_the_endpoints_key(here: Here) -> None:
    """Of the deployment with the traffic, and of the one that is pinned."""
    key = here.client.online_endpoints.get_keys(name(here)).primary_key
    for pin, found in (({}, "blue"), ({"azureml-model-deployment": "green"}, "green")):
        headers = {"Authorization": f"Bearer {key}", **pin}
        document = requests.get(endpoints.get(here).openapi_uri, headers=headers, timeout=30).json()
        assert (document["info"]["title"], document["info"]["version"]) == (name(here), found)
        assert "/v2/models/tiny/infer" in document["paths"]


@step
def h08_a_name_stays_for_the_rest_of_the_process(here: Here) -> None:
    """A bug of the SDK: it shares the headers of all calls."""
    invoke(here, deployment_name="green")
    with here.invoking:
        from azure.ai.ml.constants._endpoint import EndpointInvokeFields

        EndpointInvokeFields.DEFAULT_HEADER[EndpointInvokeFields.MODEL_DEPLOYMENT] = "green"
        assert answered(_invoke(here)) == sums(here, "two")
    assert answered(invoke(here)) == sums(here, "one")


@step
def endpoint_mirror_traffic(here: Here) -> None:
    endpoint = endpoints.get(here)
    endpoint.mirror_traffic = {"green": 10}
    assert endpoints.put(here, endpoint).mirror_traffic == {"green": 10}
    found = endpoints.get(here)
    assert (found.mirror_traffic, found.traffic) == ({"green": 10}, {"blue": 100})
    assert answered(invoke(here)) == sums(here, "one")
    found.mirror_traffic = {"green": 0}
    endpoints.put(here, found)
    assert endpoints.get(here).traffic == {"blue": 100, "green": 0}


@step
def deployment_logs_of_both_containers(here: Here) -> None:
    logs = here.client.online_deployments.get_logs
    assert "tiny" in logs("blue", name(here), lines=2000)
    last = logs("blue", name(here), lines=3)
    assert len([line for line in last.splitlines() if line.strip()]) <= 4, last
    assert isinstance(logs("blue", name(here), lines=50, container_type="storage-initializer"), str)
    with refused("foo"):
        logs("blue", name(here), lines=50, container_type="foo")
