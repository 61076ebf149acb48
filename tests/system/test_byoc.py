"""Azure ML's public example of a custom container with Triton
(``custom-container/triton/single-model``), with a tiny model in place of the large one: its
documents, the commands of its script, on this machine."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tritonclient.http as triton

from ..waiting import wait_until
from .models import REQUEST, adding
from .product import Product

pytestmark = pytest.mark.serving

ENDPOINT = """
$schema: https://azuremlsdk2.blob.core.windows.net/latest/managedOnlineEndpoint.schema.json
name: triton-cc
auth_mode: key
"""
#: As published, but for the names that the script writes into it.
DEPLOYMENT = """
$schema: https://azuremlschemas.azureedge.net/latest/managedOnlineDeployment.schema.json
name: triton-cc-deployment
endpoint_name: triton-cc
model:
  path: ./models/model_1
model_mount_path: /models
environment:
  name: triton-cc-env
  image: {image}
  inference_config:
      liveness_route:
          path: /v2/health/live
          port: 8000
      readiness_route:
          path: /v2/health/ready
          port: 8000
      scoring_route:
          path: /
          port: 8000
instance_type: Standard_DS4_v2
instance_count: 1
"""
OWN = "acr.azurecr.io/azureml-examples/triton-cc:latest"
NVIDIA = "nvcr.io/nvidia/tritonserver:25.04-py3"
NAMES = ("-n", "triton-cc-deployment", "--endpoint", "triton-cc")


@pytest.fixture(scope="module")
def product(shared: Product) -> Iterator[Product]:
    """With what the script creates, which it deletes at its end."""
    adding(shared.files / "models", 1, "model_1")
    shared.file("endpoint.yml", ENDPOINT)
    shared.file("own.yml", DEPLOYMENT.format(image=OWN))
    shared.run("online-endpoint", "create", "-f", "endpoint.yml")
    shared.run("online-deployment", "create", "--endpoint-name", "triton-cc", "-f", "own.yml", "--all-traffic")
    yield shared
    shared.run("online-endpoint", "delete", "-y", "-n", "triton-cc")


def instances(product: Product) -> dict[str, int]:
    """Living instances of the deployment: which attempt has which pid."""
    found = {}
    for file in product.home.glob("instances/triton-cc-*/instance.json"):
        record = json.loads(file.read_text()) if file.exists() else {"phase": "exited"}
        if record["phase"] != "exited":
            found[file.parent.name] = int(record["process"]["pid"])
    return found


def test_the_example_serves_as_its_script_asks(product: Product) -> None:
    shown = product.json("online-deployment", "show", *NAMES)
    assert shown["provisioning_state"] == "Succeeded"
    assert "/environments/CliV2AnonymousEnvironment/versions/" in shown["environment"]
    assert shown["model_mount_path"] == "/models"
    (note,) = shown["status"]["notes"]
    assert note.startswith(f"image {OWN} is not used on this machine; the machine's own Triton 2.")

    uri = product.run(
        "online-endpoint", "show", "-n", "triton-cc", "--query", "scoring_uri", "-o", "tsv"
    ).stdout.strip()
    key = product.keys("triton-cc")[0]
    trust = ssl.create_default_context(cafile=str(product.ca_file))
    client = triton.InferenceServerClient(uri[8:], ssl=True, ssl_context_factory=lambda: trust)
    headers = {"Authorization": f"Bearer {key}"}
    assert client.is_server_ready(headers=headers)
    given = triton.InferInput("X", [1, 4], "FP32")
    given.set_data_from_numpy(np.arange(4, dtype=np.float32).reshape(1, 4))
    answer = client.infer("model_1", [given], headers=headers)
    assert answer.as_numpy("Y").tolist() == [[1, 2, 3, 4]]

    # The scoring route is /, where Triton answers nothing: the only model is meant.
    (product.files / "request.json").write_bytes(REQUEST)
    said = product.run("online-endpoint", "invoke", "-n", "triton-cc", "--request-file", "request.json", "-o", "tsv")
    assert json.loads(said.stdout)["outputs"][0]["data"] == [2, 3, 4, 5]
    assert product.request("/endpoints/triton-cc/v2/repository/index", key=key, body=b"{}").status == 403


def test_another_image_replaces_the_instances_and_one_that_is_no_triton_changes_nothing(product: Product) -> None:
    before = instances(product)
    refused = product.run(
        "online-deployment", "update", *NAMES, "-f", product.file("tf.yml", DEPLOYMENT.format(image="tf/serving:1")),
        check=False,
    )  # fmt: skip
    assert refused.returncode == 1
    assert "tf.yml:10:" in refused.stderr
    assert "this machine runs no containers; image tf/serving:1 is not a Triton image" in refused.stderr
    assert "ML_LOCAL_TRITON_IMAGES=tf/serving" in refused.stderr
    assert len(before) == 1
    assert instances(product) == before

    product.run(
        "online-deployment", "update", *NAMES, "-f", product.file("nvidia.yml", DEPLOYMENT.format(image=NVIDIA))
    )
    (note,) = product.json("online-deployment", "show", *NAMES)["status"]["notes"]
    assert note.startswith(f"image {NVIDIA} is not used on this machine")
    wait_until(lambda: not instances(product).keys() & before.keys(), "the former instance has ended")
    (pid,) = instances(product).values()
    lines = Path(f"/proc/{pid}/environ").read_text().split("\0")
    environment = dict(line.split("=", 1) for line in lines if line)
    assert (Path(environment["AZUREML_MODEL_DIR"]) / "model_1" / "1" / "model.onnx").is_file()
    key = product.keys("triton-cc")[0]
    assert product.request("/endpoints/triton-cc/", key=key, body=REQUEST).status == 200
