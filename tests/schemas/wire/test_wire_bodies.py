"""Bodies as Azure's own SDK sends them, and what they are as documents; ours are read and written
the same way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from amphitrite.schemas import documents, wire

CASES = {case["case"]: case for case in json.loads((Path(__file__).parent / "data" / "wire.json").read_text())}
WORKSPACE = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"
MODEL_URI = "azureml://subscriptions/s/resourcegroups/g/workspaces/w/datastores/workspaceblobstore/paths/LocalUpload/0a1b2c/models"
BLUE = {"name": "blue", "endpoint_name": "my-ep", "instance_count": 1, "instance_type": "Standard_NC6s_v3"}
GREEN = {
    "name": "blue",
    "endpoint_name": "my-ep",
    "tags": {"x": "y"},
    "model": f"{WORKSPACE}/models/my-model/versions/1",
    "environment_variables": {"A": "b"},
    "request_settings": {
        "request_timeout_ms": 3000,
        "max_concurrent_requests_per_instance": 4,
        "max_queue_wait_ms": 1000,
    },
    "liveness_probe": {
        "period": 10,
        "initial_delay": 10,
        "timeout": 2,
        "success_threshold": 1,
        "failure_threshold": 30,
    },
    "readiness_probe": {"initial_delay": 5},
    "instance_type": "Standard_NC6s_v3",
}
EP = {"name": "my-ep", "description": "hello", "tags": {"t": "v"}, "auth_mode": "key", "properties": {"k": "v"}}
MODEL = {"name": "m", "version": "1", "type": "triton_model", "path": MODEL_URI}

DOCUMENTS: dict[str, dict[str, Any]] = {
    "endpoint-create": EP,
    "endpoint-traffic": {**EP, "traffic": {"blue": 100}, "public_network_access": "enabled"},
    "deployment-minimal": {**BLUE, "model": f"{WORKSPACE}/models/0a1b2c/versions/1"},
    "deployment-settings": {**GREEN, "instance_count": 1},
    "deployment-scaled": {**GREEN, "instance_count": 2, "egress_public_network_access": "enabled"},
    "deployment-container": {
        **BLUE,
        "model": f"{WORKSPACE}/models/0a1b2c/versions/1",
        "model_mount_path": "/models",
        "environment": f"{WORKSPACE}/environments/CliV2AnonymousEnvironment/versions/0a1b2c",
        "environment_variables": {"MODEL_BASE_PATH": "/models"},
    },
    "deployment-code": {
        **BLUE,
        "model": f"{WORKSPACE}/models/my-model/versions/2",
        "environment": f"{WORKSPACE}/environments/CliV2AnonymousEnvironment/versions/0a1b2c",
        "code_configuration": {"code": f"{WORKSPACE}/codes/c0de/versions/1", "scoring_script": "score.py"},
    },
    "model": {**MODEL, "description": "d", "tags": {"a": "1"}, "properties": {"p": "x"}},
    "model-again": MODEL,
    "environment": {
        "name": "m",
        "version": "1",
        "image": "nvcr.io/nvidia/tritonserver:24.08-py3",
        "inference_config": {
            "liveness_route": {"port": 8000, "path": "/v2/health/live"},
            "scoring_route": {"port": 8000, "path": "/"},
            "readiness_route": {"port": 8000, "path": "/v2/health/ready"},
        },
    },
}
#: What the SDK reads back and repeats although it is the default: ours is shorter.
REPEATS = {"endpoint-traffic", "deployment-scaled"}


def read(case: str, body: object) -> dict[str, Any]:
    if case.startswith("endpoint"):
        return wire.endpoint_from_wire("my-ep", body)
    if case.startswith("deployment"):
        return wire.deployment_from_wire("my-ep", "blue", body)
    if case.startswith("model"):
        return wire.model_from_wire("m", "1", body)
    return wire.environment_from_wire("m", "1", body)


def write(case: str, document: dict[str, Any]) -> dict[str, Any]:
    if case.startswith("endpoint"):
        return wire.endpoint_to_wire(document, "onprem")
    if case.startswith("deployment"):
        return wire.deployment_to_wire(document, "onprem")
    if case.startswith("model"):
        return wire.model_to_wire(document, document["path"])
    return wire.environment_to_wire(document)


def kind(case: str) -> str:
    long = {"endpoint": "managed_online_endpoint", "deployment": "managed_online_deployment"}
    return long.get(case.split("-")[0], case.split("-")[0])


@pytest.mark.parametrize("case", DOCUMENTS)
def test_a_request_of_the_sdk_is_this_document(case: str) -> None:
    document = read(case, CASES[case]["request"])
    assert document == DOCUMENTS[case]
    assert documents.validate(kind(case), document) == []
    assert documents.normalize(kind(case), document) == document


@pytest.mark.parametrize("case", DOCUMENTS)
def test_the_document_is_written_as_the_sdk_writes_it(case: str) -> None:
    body = write(case, DOCUMENTS[case])
    assert read(case, body) == DOCUMENTS[case]
    if case not in REPEATS:
        assert body == CASES[case]["request"]


@pytest.mark.parametrize("case", DOCUMENTS)
def test_an_answer_can_be_put_again(case: str) -> None:
    document = read(case, CASES[case]["response"])
    assert DOCUMENTS[case].items() <= document.items()
    assert documents.validate(kind(case), document) == []


def test_archiving_is_read_as_flags() -> None:
    body = CASES["model-archive"]["request"]
    assert wire.container_from_wire("m", body) == {"name": "m"}
    assert wire.model_flags(body) == (True, False)
    assert wire.model_flags({"properties": {"isAnonymous": True}}) == (False, True)
