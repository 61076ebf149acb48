"""The OpenAPI document of an endpoint: what it says of the models, and who may read it."""

from __future__ import annotations

import json
from typing import Any

import jwt
import pytest
from jsonschema import Draft4Validator
from openapi_spec_validator import OpenAPIV2SpecValidator, OpenAPIV30SpecValidator

from amphitrite.controlplane.auth import scoring_tokens

from ...tiny_onnx import tiny
from .conftest import BLOBS, BLOCK_BLOB, URI, WS, World

ADDRESS = "/endpoints/ep1/swagger.json"
#: Two inputs of other types, one of them optional; a batch; text out.
PAIR = b"""
backend: "python"
max_batch_size: 8
input [{ name: "A" data_type: TYPE_INT64 dims: [3] }, { name: "B" data_type: TYPE_STRING dims: [-1] optional: true }]
output [{ name: "C" data_type: TYPE_STRING dims: [1] }]
"""
STREAM = b"""
backend: "python"
model_transaction_policy { decoupled: true }
input [{ name: "N" data_type: TYPE_INT32 dims: [1] }]
output [{ name: "T" data_type: TYPE_FP32 dims: [1] }]
"""
MODEL = b"class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"


def register(world: World, name: str, files: dict[str, bytes]) -> None:
    for path, content in files.items():
        url = f"{BLOBS}/LocalUpload/{name}/models/{path}"
        assert world.client.put(url, content=content, headers=BLOCK_BLOB).status_code == 201
    body = {"properties": {"modelType": "triton_model", "modelUri": f"{URI}/LocalUpload/{name}/models"}}
    answer = world.client.put(f"{WS}/models/{name}/versions/1", json=body)
    assert answer.status_code == 201, answer.text


@pytest.fixture
def described(world: Any) -> World:
    """``blue`` serves ``tiny`` and has the traffic; ``green`` serves two models."""
    register(world, "one", {"tiny/1/model.onnx": tiny("described")})
    two = {"pair/config.pbtxt": PAIR, "pair/1/model.py": MODEL, "words/config.pbtxt": STREAM, "words/1/model.py": MODEL}
    register(world, "two", two)
    assert world.endpoint().status_code == 201
    for name, model in (("blue", "one"), ("green", "two")):
        assert world.deployment(name, model=f"azureml:{model}:1").status_code == 201
    assert world.endpoint(traffic={"blue": 60, "green": 40}).status_code == 200
    return world


def read(world: World, version: int = 2, pin: str | None = None) -> Any:
    headers = {} if pin is None else {"azureml-model-deployment": pin}
    answer = world.client.get(ADDRESS, params={"version": str(version)}, headers=headers)
    assert answer.status_code == 200, answer.text
    document = answer.json()
    (OpenAPIV2SpecValidator if version == 2 else OpenAPIV30SpecValidator)(document).validate()
    return document


def test_the_resource_has_its_address(described: World) -> None:
    shown = described.client.get(f"{WS}/onlineEndpoints/ep1").json()["properties"]
    assert shown["swaggerUri"] == f"https://test:8443{ADDRESS}"


def test_swagger_of_the_deployment_with_most_of_the_traffic(described: World) -> None:
    document = read(described)
    assert (document["info"]["title"], document["info"]["version"]) == ("ep1", "blue")
    assert (document["host"], document["basePath"], document["schemes"]) == (
        *("127.0.0.1:9443", "/endpoints/ep1"),
        ["https"],
    )
    assert set(document["paths"]) == {"/", "/v2/health/ready", "/v2/models/tiny", "/v2/models/tiny/infer"}
    [body] = [one for one in document["paths"]["/"]["post"]["parameters"] if one["in"] == "body"]
    assert body["schema"] == {"$ref": "#/definitions/tiny.Request"}
    tensor = document["definitions"]["tiny.Request"]["properties"]["inputs"]["items"]
    assert tensor["description"] == "x: FP32 [any, 4]"
    assert tensor["properties"]["shape"]["example"] == [1, 4]


def test_a_request_that_the_model_takes_fits_and_another_does_not(described: World) -> None:
    schema = read(described)["definitions"]["tiny.Request"]
    tensor = {"name": "x", "shape": [2, 4], "datatype": "FP32", "data": [0.0] * 8}
    Draft4Validator(schema).validate({"inputs": [tensor], "outputs": [{"name": "y"}]})
    for wrong in ({"name": "z"}, {"shape": [4]}, {"datatype": "INT64"}):
        assert not Draft4Validator(schema).is_valid({"inputs": [{**tensor, **wrong}]})
    assert not Draft4Validator(schema).is_valid({"inputs": []})


def test_a_pin_chooses_and_version_3_has_alternatives(described: World) -> None:
    document = read(described, 3, "GREEN")
    assert document["servers"] == [{"url": "https://127.0.0.1:9443/endpoints/ep1"}]
    # Two models: a POST to the address itself is answered by neither.
    assert set(document["paths"]) == {
        *("/v2/health/ready", "/v2/models/pair", "/v2/models/pair/infer"),
        *("/v2/models/words", "/v2/models/words/generate_stream"),
    }
    inputs = document["components"]["schemas"]["pair.Request"]["properties"]["inputs"]
    assert [one["description"] for one in inputs["items"]["oneOf"]] == [
        "A: INT64 [any, 3]",
        "B: BYTES [any, any], optional",
    ]
    assert inputs["minItems"] == 1
    stream = document["paths"]["/v2/models/words/generate_stream"]["post"]
    assert list(stream["responses"]["200"]["content"]) == ["text/event-stream"]
    shared = read(described, 2, "green")["definitions"]["pair.Request"]["properties"]["inputs"]["items"]
    assert shared["properties"]["name"]["enum"] == ["A", "B"]


def test_a_model_that_completes_itself_is_described_by_any_tensors(world: Any) -> None:
    completing = MODEL + b"\n    @staticmethod\n    def auto_complete_config(config):\n        return config\n"
    register(world, "unknown", {"m/config.pbtxt": b'backend: "python"', "m/1/model.py": completing})
    assert world.endpoint().status_code == 201
    assert world.deployment(model="azureml:unknown:1").status_code == 201
    assert "BYTES" in json.dumps(read(world, 3, "blue")["components"]["schemas"]["m.Request"])


@pytest.mark.parametrize(
    ("query", "pin", "status", "says"),
    [
        ("", "purple", 404, "endpoint 'ep1' has no deployment 'purple'"),
        ("?version=4", None, 400, "version"),
    ],
)
def test_refusals(described: World, query: str, pin: str | None, status: int, says: str) -> None:
    headers = {} if pin is None else {"azureml-model-deployment": pin}
    answer = described.client.get(f"{ADDRESS}{query}", headers=headers)
    assert answer.status_code == status and says in answer.text


def test_without_traffic_the_pin_is_asked_for(ready: Any) -> None:
    answer = ready.client.get(ADDRESS)
    assert answer.status_code == 404 and "has traffic" in answer.json()["error"]["message"]
    assert ready.client.get(ADDRESS, headers={"azureml-model-deployment": "blue"}).status_code == 200


def test_keys_of_the_endpoint_open_it_and_nothing_else(described: World) -> None:
    described.endpoint("ep2")
    keys = described.client.post(f"{WS}/onlineEndpoints/ep1/listKeys").json()
    others = described.client.post(f"{WS}/onlineEndpoints/ep2/listKeys").json()
    agent = described.services.credentials.agent_token.reveal()
    for given, path, status in (
        *((f"Bearer {key}", ADDRESS, 200) for key in keys.values()),
        (f"bearer {keys['primaryKey']}", ADDRESS, 200),
        *((f"Bearer {key}", ADDRESS, 401) for key in others.values()),
        *((given, ADDRESS, 401) for given in ("", "Bearer", "Bearer x", keys["primaryKey"], f"Bearer {agent}")),
        (f"Bearer {keys['primaryKey']}", "/endpoints/nothing/swagger.json", 401),
        (f"Bearer {keys['primaryKey']}", f"{WS}/onlineEndpoints/ep1", 401),
    ):
        answer = described.client.get(path, headers={"Authorization": given})
        assert answer.status_code == status, (given[:10], path)
    assert described.client.get("/endpoints/nothing/swagger.json").status_code == 404


@pytest.mark.parametrize("mode", ["AMLToken", "AADToken"])
def test_tokens_that_score_open_it(world: Any, mode: str) -> None:
    now = world.now[0]
    world.store.change_signing_keys([scoring_tokens.make_key(now - 60)], [])
    world.model()
    for name in ("ep1", "ep2"):
        assert world.endpoint(name, authMode=mode).status_code == 201
    assert world.deployment().status_code == 201
    pin = {"azureml-model-deployment": "blue"}

    def status(token: str) -> int:
        return int(world.client.get(ADDRESS, headers={**pin, "Authorization": f"Bearer {token}"}).status_code)

    if mode == "AMLToken":
        token, other = (
            world.client.post(f"{WS}/onlineEndpoints/{name}/token").json()["accessToken"] for name in ("ep1", "ep2")
        )
    else:
        token = world.services.tokens.for_resource("https://ml.azure.com")[0].reveal()
        other = world.services.tokens.for_endpoint("ep1", "x").text.reveal()
    forged = jwt.encode(jwt.decode(token, options={"verify_signature": False}), "x" * 32, "HS256")
    key = world.client.get(f"{WS}/onlineEndpoints/ep1").json()["name"]
    assert [status(one) for one in (token, other, forged, key, "a.b.c")] == [200, 401, 401, 401, 401]
    if mode == "AMLToken":
        revoked = world.client.post(f"{WS}/onlineEndpoints/ep1/regenerateKeys", json={"keyType": "Secondary"})
        assert (revoked.status_code, status(token)) == (202, 401)
        token = world.client.post(f"{WS}/onlineEndpoints/ep1/token").json()["accessToken"]
        assert status(token) == 200
    world.now[0] += 10**6
    assert status(token) == 401
