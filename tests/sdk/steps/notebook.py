"""The cells of Azure's public notebooks for Triton, without code and in a container, in their
order, with a tiny model in place of the large one."""

from __future__ import annotations

import json
import os
import subprocess

from azure.ai.ml import MLClient
from azure.ai.ml.entities import Environment, ManagedOnlineDeployment, ManagedOnlineEndpoint, Model
from azure.identity import DefaultAzureCredential

from .deployments import answered, invoke, sums
from .step import Here, step

#: Run by an interpreter that has the packages of the notebook's first cell.
CLIENT = """
import json, sys
import gevent.ssl, numpy as np
import tritonclient.http as tritonhttpclient

scoring_uri, auth_key = json.load(sys.stdin)
url = scoring_uri[8:]
triton_client = tritonhttpclient.InferenceServerClient(
    url=url, ssl=True, ssl_context_factory=gevent.ssl._create_default_https_context
)
headers = {"Authorization": f"Bearer {auth_key}"}
health_ctx = triton_client.is_server_ready(headers=headers)
status_ctx = triton_client.is_model_ready("tiny", "1", headers)
input = tritonhttpclient.InferInput("X", [1, 4], "FP32")
input.set_data_from_numpy(np.array([[1, 2, 3, 4]], np.float32))
result = triton_client.infer("tiny", [input], outputs=[tritonhttpclient.InferRequestedOutput("Y")], headers=headers)
print(json.dumps([health_ctx, status_ctx, result.as_numpy("Y").tolist()[0]]))
"""


def scored(here: Here, scoring_uri: str, auth_key: str) -> list[object]:
    """What the notebooks' last cell prints."""
    done = subprocess.run(
        [here.python, "-c", CLIENT], input=json.dumps([scoring_uri, auth_key]), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found: list[object] = json.loads(done.stdout)
    return found


@step
def notebook_for_triton_in_a_container(here: Here) -> None:
    """It registers the directory of one model, and the image is in the workspace's registry."""
    ml_client = here.client
    endpoint_name = f"notebook-cc-{here.tag}"
    workspace = ml_client.workspaces.get(os.environ["ML_WORKSPACE"])
    acr_name = workspace.container_registry.split("/")[-1]
    endpoint = ManagedOnlineEndpoint(name=endpoint_name, auth_mode="key")
    model = Model(path=str(here.files / "seven" / "tiny"), type="triton_model")
    environment = Environment(
        name=f"triton-cc-env-{here.tag}",
        inference_config={
            "liveness_route": {"path": "/v2/health/live", "port": 8000},
            "readiness_route": {"path": "/v2/health/ready", "port": 8000},
            "scoring_route": {"path": "/", "port": 8000},
        },
        image=f"{acr_name}.azurecr.io/azureml-examples/triton-cc:1",
    )
    deployment = ManagedOnlineDeployment(
        name="blue",
        endpoint_name=endpoint_name,
        environment=environment,
        model=model,
        instance_type="STANDARD_NC4AS_T4_V3",
        instance_count=1,
        model_mount_path="/models",
    )
    endpoint = ml_client.online_endpoints.begin_create_or_update(endpoint).result()
    ml_client.online_deployments.begin_create_or_update(deployment).result()
    endpoint.traffic = {"blue": 100}
    ml_client.online_endpoints.begin_create_or_update(endpoint).result()
    endpoint = ml_client.online_endpoints.get(endpoint_name)
    auth_key = ml_client.online_endpoints.get_keys(endpoint_name).primary_key
    assert scored(here, endpoint.scoring_uri, auth_key) == [True, True, sums(here, "seven")]
    ml_client.online_deployments.get_logs(name="blue", endpoint_name=endpoint_name, lines=50)
    ml_client.online_endpoints.begin_delete(name=endpoint_name).wait()


@step
def notebook_for_triton(here: Here) -> None:
    ml_client = MLClient(
        DefaultAzureCredential(),
        os.environ["ML_SUBSCRIPTION"],
        os.environ["ML_RESOURCE_GROUP"],
        os.environ["ML_WORKSPACE"],
    )
    endpoint_name = f"notebook-{here.tag}"
    endpoint = ManagedOnlineEndpoint(name=endpoint_name, description="this is a sample endpoint", auth_mode="key")
    ml_client.online_endpoints.begin_create_or_update(endpoint).result()

    model = Model(path=str(here.files / "seven"), type="triton_model")
    blue_deployment = ManagedOnlineDeployment(
        name="blue",
        endpoint_name=endpoint_name,
        model=model,
        instance_type="Standard_NC6s_v3",
        instance_count=1,
    )
    ml_client.online_deployments.begin_create_or_update(blue_deployment).result()
    endpoint.traffic = {"blue": 100}
    ml_client.online_endpoints.begin_create_or_update(endpoint).result()

    endpoint = ml_client.online_endpoints.get(endpoint_name)
    scoring_uri = endpoint.scoring_uri
    auth_key = ml_client.online_endpoints.get_keys(endpoint_name).primary_key
    assert scored(here, scoring_uri, auth_key) == [True, True, sums(here, "seven")]

    assert answered(invoke(here, endpoint_name)) == sums(here, "seven")
    assert "tiny" in ml_client.online_deployments.get_logs(name="blue", endpoint_name=endpoint_name, lines=500)
    assert ml_client.online_deployments.get(name="blue", endpoint_name=endpoint_name).provisioning_state == "Succeeded"
    ml_client.online_endpoints.begin_delete(name=endpoint_name)
