"""Azure ML's public shell scripts, written for ``az ml``, run to their end with ``az`` as a
function of the shell.

The scripts are in ``az/``. They find the workspace by ``az configure --defaults``, as Azure's do,
and nothing else.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from .models import REQUEST, adding, pooling
from .product import Product

pytestmark = [pytest.mark.serving, pytest.mark.early]

SCRIPTS = Path(__file__).parent / "az"
GROUP, WORKSPACE = "azureml-examples", "main"
SCHEMA = "$schema: https://azuremlschemas.azureedge.net/latest/"
NO_CODE, BYOC = "endpoints/online/triton/single-model", "endpoints/online/custom-container/triton/single-model"
ROLLOUT = "endpoints/online/managed/saferollout"
FILES = {
    f"{ROLLOUT}/endpoint.yml": f"{SCHEMA}managedOnlineEndpoint.schema.json\nname: my-endpoint\nauth_mode: key\n",
    f"{NO_CODE}/create-managed-endpoint.yaml": (
        f"{SCHEMA}managedOnlineEndpoint.schema.json\nname: my-endpoint\nauth_mode: aml_token\n"
    ),
    f"{NO_CODE}/create-managed-deployment.yaml": f"""{SCHEMA}managedOnlineDeployment.schema.json
name: blue
endpoint_name: my-endpoint
model:
  name: sample-densenet-onnx-model
  version: 1
  path: ./models
  type: triton_model
instance_count: 1
instance_type: Standard_NC6s_v3
""",
    f"{BYOC}/triton-cc-endpoint.yml": (
        f'{SCHEMA}managedOnlineEndpoint.schema.json\nname: "{{{{ENDPOINT_NAME}}}}"\nauth_mode: key\n'
    ),
    f"{BYOC}/triton-cc.dockerfile": "FROM nvcr.io/nvidia/tritonserver:25.03-py3\nCMD tritonserver\n",
    f"{BYOC}/triton-cc-deployment.yml": f"""{SCHEMA}managedOnlineDeployment.schema.json
name: triton-cc-deployment
endpoint_name: "{{{{ENDPOINT_NAME}}}}"
model:
  path: ./models/model_1
model_mount_path: /models
environment:
  name: triton-cc-env
  image: "{{{{acr_name}}}}.azurecr.io/azureml-examples/triton-cc:latest"
  inference_config:
    liveness_route: {{path: /v2/health/live, port: 8000}}
    readiness_route: {{path: /v2/health/ready, port: 8000}}
    scoring_route: {{path: /, port: 8000}}
instance_type: Standard_DS4_v2
instance_count: 1
""",
}
for number, color in enumerate(("blue", "green"), start=1):
    FILES[f"{ROLLOUT}/{color}-deployment.yml"] = f"""{SCHEMA}managedOnlineDeployment.schema.json
name: {color}
endpoint_name: my-endpoint
model:
  path: ../../model-{number}/model/
  type: triton_model
instance_type: Standard_DS3_v2
instance_count: 1
"""


class Shell:
    """A user's shell. Scripts that ``begin`` run beside each other, as they mostly wait; ``end``
    waits for one."""

    def __init__(self, product: Product) -> None:
        self.product = product
        self._running: dict[str, subprocess.Popen[str]] = {}

    def begin(self, name: str, script: str) -> None:
        out, err = (self.product.files / f"{name}.{kind}" for kind in ("out", "err"))
        with out.open("w") as stdout, err.open("w") as stderr:
            self._running[name] = subprocess.Popen(
                ["bash", "-c", f"{(SCRIPTS / 'az.sh').read_text()}\n{script}"],
                env=self.product.environment,
                cwd=self.product.files,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                text=True,
            )

    def end(self, name: str) -> str:
        """What the script has printed; fails when it has failed."""
        code = self._running.pop(name).wait(timeout=300)
        out, err = ((self.product.files / f"{name}.{kind}").read_text() for kind in ("out", "err"))
        assert code == 0, f"{code}\n{out}\n{err}"
        return out

    def close(self) -> None:
        for process in self._running.values():
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """All scripts under way in a checkout of the examples; the control plane's workspace is not the
    default one."""
    product = Product(tmp_path_factory.mktemp("az"))
    for name, text in FILES.items():
        (product.files / name).parent.mkdir(parents=True, exist_ok=True)
        (product.files / name).write_text(text)
    for number in (1, 2):
        model = product.files / f"endpoints/online/model-{number}"
        adding(model / "model", number)
        (model / "sample-request.json").write_bytes(REQUEST)
    pooling(product.files / NO_CODE / "models")
    shutil.copy(SCRIPTS / "triton_densenet_scoring.py", product.files / NO_CODE)
    shell = Shell(product)
    try:
        plain = dict(product.environment)
        product.environment |= {
            "ML_RESOURCE_GROUP": GROUP,
            "ML_WORKSPACE": WORKSPACE,
            "ML_CONTAINER_REGISTRY": "contoso",
            "ML_LOCAL_TRITON_IMAGES": "contoso.azurecr.io/azureml-examples/triton-cc",
        }
        product.start()
        bundle = str(product.home / "certificates" / "bundle.pem")
        product.environment = plain | {"SSL_CERT_FILE": bundle, "CURL_CA_BUNDLE": bundle, "API_URL": product.api_url}
        shell.begin("configure", f"az configure --defaults group={GROUP} workspace={WORKSPACE}")
        shell.end("configure")
        for script in SCRIPTS.glob("*_*.sh"):
            shell.begin(script.stem, script.read_text())
        yield shell
    finally:
        shell.close()
        product.destroy()


def said(text: str, what: str) -> str:
    """The rest of the line that begins with ``what``."""
    return next(line.partition(": ")[2] for line in text.splitlines() if line.startswith(f"{what}: "))


def output(answer: str) -> list[float]:
    body = json.loads(answer)
    values: list[float] = (json.loads(body) if isinstance(body, str) else body)["outputs"][0]["data"]
    return values


def test_safe_rollout(shell: Shell) -> None:
    text = shell.end("safe_rollout")
    assert [output(said(text, step)) for step in ("blue", "green", "curl", "moved")] == [
        [2, 3, 4, 5],
        [3, 4, 5, 6],
        [3, 4, 5, 6],
        [3, 4, 5, 6],
    ]
    assert said(text, "split").split() == ["90", "10"]


def test_triton_without_code(shell: Shell) -> None:
    text = shell.end("triton_no_code")
    assert "Is server ready - True\nIs model ready - True\nlabel: 2\n" in text


def test_triton_in_a_container_of_ones_own(shell: Shell) -> None:
    text = shell.end("triton_byoc")
    assert "Is server ready - True\nIs model ready - True\nlabel: 2\n" in text


def test_rest(shell: Shell) -> None:
    text = shell.end("deploy_rest")
    steps = ("container", "swagger", "scoring only")
    assert [said(text, step) for step in steps] == ["azureml-blobstore", "blue", "401"]
    assert text.count("status: Succeeded\n") == 3
    assert output(said(text, "curl")) == [2, 3, 4, 5]
    assert "tiny" in json.loads((shell.product.files / "rest-logs.txt").read_text())["content"]


def test_local_endpoint(shell: Shell) -> None:
    text = shell.end("local_endpoint")
    assert said(text, "status") == "Succeeded Succeeded"
    assert [output(said(text, step)) for step in ("invoke", "stdin", "curl")] == [[2, 3, 4, 5]] * 3
    assert "tiny" in (shell.product.files / "logs.txt").read_text()


def test_autoscale(shell: Shell) -> None:
    text = shell.end("moe_autoscale")
    steps = ("instances", "why", "rules", "left")
    # The weekend's limits are the same.
    assert [said(text, step).rpartition(": ")[2] for step in steps] == ["2", "the minimum is 2", "3", "0"]
