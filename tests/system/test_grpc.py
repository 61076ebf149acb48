"""gRPC with Triton's own client: by metadata and by host name, and what Triton itself keeps shut."""

from __future__ import annotations

import json
import queue
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import tritonclient.grpc as tritonclient
from tritonclient.utils import InferenceServerException

from .models import adding
from .product import DEADLINE_S, Product, running

pytestmark = pytest.mark.serving

PIN = "azureml-model-deployment"
DOMAIN = "ml.example.test"


@dataclass(frozen=True)
class Scoring:
    """The endpoint ``numbers``: ``blue`` adds 1 and counts down, ``green`` adds 100; all traffic is blue's."""

    product: Product
    key: str

    def client(self) -> tritonclient.InferenceServerClient:
        host, port = self.product.scoring
        return tritonclient.InferenceServerClient(
            f"{host}:{port}", ssl=True, root_certificates=str(self.product.ca_file)
        )

    def client_by_host(self) -> tritonclient.InferenceServerClient:
        """Where no name server knows the name, the client is told which one to ask for."""
        host, port = self.product.scoring
        names = [(f"grpc.{key}", f"numbers.{DOMAIN}") for key in ("ssl_target_name_override", "default_authority")]
        trust = str(self.product.ca_file)
        return tritonclient.InferenceServerClient(
            f"{host}:{port}", ssl=True, root_certificates=trust, channel_args=names
        )

    def headers(self, **more: str) -> dict[str, str]:
        given = {"amphitrite-endpoint": "numbers", "authorization": f"Bearer {self.key}"}
        return {name: value for name, value in {**given, **more}.items() if value}


@pytest.fixture(scope="module")
def scoring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scoring]:
    root = tmp_path_factory.mktemp("grpc")
    blue = adding(root / "blue", 1)
    shutil.copytree(Path(__file__).parent / "model_types" / "countdown", blue / "countdown")
    green = adding(root / "green", 100)
    for product in running(root, ML_SCORING_DOMAIN=DOMAIN):
        product.endpoint("numbers")
        for name, files, traffic in (("blue", blue, ["--all-traffic"]), ("green", green, [])):
            product.run("model", "create", "-n", name, "-v", "1", "-t", "triton_model", "-p", str(files))
            settings = {"request_timeout_ms": 30_000, "max_concurrent_requests_per_instance": 8}
            product.deploy(name, f"{name}:1", *traffic, endpoint="numbers", request_settings=settings)
        yield Scoring(product, product.keys("numbers")[0])


def row() -> list[tritonclient.InferInput]:
    tensor = tritonclient.InferInput("X", [1, 4], "FP32")
    tensor.set_data_from_numpy(np.array([[1, 2, 3, 4]], np.float32))
    return [tensor]


def count_from(number: int) -> list[tritonclient.InferInput]:
    tensor = tritonclient.InferInput("from", [1], "INT32")
    tensor.set_data_from_numpy(np.array([number], np.int32))
    return [tensor]


def test_infer_and_what_a_client_asks_about_a_server(scoring: Scoring) -> None:
    with scoring.client() as client:
        headers = scoring.headers()
        assert client.is_server_live(headers=headers) and client.is_model_ready("tiny", headers=headers)
        assert client.get_model_metadata("tiny", headers=headers).platform == "onnxruntime_onnx"
        assert client.infer("tiny", row(), headers=headers).as_numpy("Y").tolist() == [[2, 3, 4, 5]]
        pinned = client.infer("tiny", row(), headers=scoring.headers(**{PIN: "green"}))
        assert pinned.as_numpy("Y").tolist() == [[101, 102, 103, 104]]
        many = client.infer("tiny", row(), headers=headers, compression_algorithm="gzip", client_timeout=10)
        assert many.as_numpy("Y").tolist() == [[2, 3, 4, 5]]


def test_a_host_name_takes_the_place_of_the_metadata(scoring: Scoring) -> None:
    with scoring.client_by_host() as client:
        headers = scoring.headers(**{"amphitrite-endpoint": ""})
        assert client.infer("tiny", row(), headers=headers).as_numpy("Y").tolist() == [[2, 3, 4, 5]]
        with pytest.raises(InferenceServerException) as caught:
            client.infer("tiny", row())
        assert caught.value.status() == "StatusCode.UNAUTHENTICATED"


def test_the_scoring_uri_is_by_host_and_its_certificate_names_it(scoring: Scoring) -> None:
    product = scoring.product
    host, port = f"numbers.{DOMAIN}", product.scoring[1]
    assert product.json("endpoint", "show", "-n", "numbers")["scoring_uri"] == f"https://{host}:{port}/"
    trust = ssl.create_default_context(cafile=str(product.ca_file))
    for address, path in ((host, "/"), ("127.0.0.1", "/endpoints/numbers/")):
        with httpx.Client(verify=trust, trust_env=False) as client:
            answer = client.get(
                f"https://127.0.0.1:{port}{path}v2/health/ready",
                headers={"host": f"{address}:{port}", "authorization": f"Bearer {scoring.key}"},
                extensions={} if address == "127.0.0.1" else {"sni_hostname": address},
            )
        assert answer.status_code == 200, address
    assert product.json("server", "status")["scoring_domain"] == DOMAIN


def test_after_server_env_the_client_need_not_be_told_whom_to_trust(scoring: Scoring) -> None:
    script = (
        "import sys, tritonclient.grpc as t\n"
        "client = t.InferenceServerClient(sys.argv[1], ssl=True)\n"
        "headers = {'amphitrite-endpoint': 'numbers', 'authorization': sys.argv[2]}\n"
        "assert client.is_server_ready(headers=headers)\n"
    )
    (host, port), told = scoring.product.scoring, scoring.product.json("server", "env", "--shell", "json")
    command = [sys.executable, "-c", script, f"{host}:{port}", f"Bearer {scoring.key}"]
    done = subprocess.run(command, env={**scoring.product.environment, **told}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_async_infer(scoring: Scoring) -> None:
    answers: queue.Queue[Any] = queue.Queue()
    with scoring.client() as client:
        for _ in range(5):
            client.async_infer(
                "tiny", row(), lambda result, error: answers.put(error or result), headers=scoring.headers()
            )
        found = [answers.get(timeout=DEADLINE_S) for _ in range(5)]
    assert [answer.as_numpy("Y").tolist() for answer in found] == [[[2, 3, 4, 5]]] * 5


def test_a_decoupled_model_streams_each_answer_as_it_comes(scoring: Scoring) -> None:
    answers: queue.Queue[Any] = queue.Queue()

    def left() -> int:
        answer = answers.get(timeout=DEADLINE_S)
        assert not isinstance(answer, Exception), answer
        return int(answer.as_numpy("left")[0])

    with scoring.client() as client:
        client.start_stream(lambda result, error: answers.put(error or result), headers=scoring.headers())
        client.async_stream_infer("countdown", count_from(2))
        # The model says the next number only when another request lets it: had anybody buffered, this would wait.
        assert left() == 2
        client.async_stream_infer("countdown", count_from(0))
        assert sorted([left(), left(), left()]) == [0, 0, 1]
        client.stop_stream()


@pytest.mark.parametrize(
    ("headers", "status", "says"),
    [
        ({"authorization": "Bearer nope"}, "UNAUTHENTICATED", "not one of this endpoint's"),
        ({"authorization": ""}, "UNAUTHENTICATED", "no key"),
        ({"amphitrite-endpoint": "nobody"}, "NOT_FOUND", "no such endpoint"),
        ({"amphitrite-endpoint": ""}, "NOT_FOUND", "amphitrite-endpoint"),
        ({PIN: "red"}, "NOT_FOUND", "no deployment 'red'"),
    ],
)
def test_a_refusal_is_a_status_with_words(scoring: Scoring, headers: dict[str, str], status: str, says: str) -> None:
    with scoring.client() as client, pytest.raises(InferenceServerException) as caught:
        client.infer("tiny", row(), headers=scoring.headers(**headers))
    assert caught.value.status() == f"StatusCode.{status}"
    assert says in caught.value.message()


def test_a_model_s_own_failure_stays_as_triton_says_it(scoring: Scoring) -> None:
    with (
        scoring.client() as client,
        pytest.raises(InferenceServerException, match="unknown model: 'nothing'") as caught,
    ):
        client.infer("nothing", row(), headers=scoring.headers())
    assert caught.value.status() == "StatusCode.NOT_FOUND"


STEERING = {
    "repository": lambda client, **how: client.get_model_repository_index(**how),
    "load": lambda client, **how: client.load_model("tiny", **how),
    "shared memory": lambda client, **how: client.get_system_shared_memory_status(**how),
    "trace": lambda client, **how: client.get_trace_settings(**how),
    "logging": lambda client, **how: client.get_log_settings(**how),
}


@pytest.mark.parametrize("call", STEERING.values(), ids=STEERING)
def test_what_steers_triton_is_refused_by_the_proxy_and_by_triton(scoring: Scoring, call: Any) -> None:
    with scoring.client() as client, pytest.raises(InferenceServerException) as caught:
        call(client, headers=scoring.headers())
    assert caught.value.status() == "StatusCode.PERMISSION_DENIED"
    for record in instances(scoring):
        with (
            tritonclient.InferenceServerClient(f"127.0.0.1:{record['grpc_port']}") as direct,
            pytest.raises(InferenceServerException, match="restricted"),
        ):
            call(direct)


@pytest.mark.parametrize(
    "path", ["v2/repository/index", "v2/logging", "v2/trace/setting", "v2/systemsharedmemory/status"]
)
def test_the_same_by_http_at_triton_itself(scoring: Scoring, path: str) -> None:
    for record in instances(scoring):
        method = "POST" if path.endswith("index") else "GET"
        answer = httpx.request(method, f"http://127.0.0.1:{record['port']}/{path}", trust_env=False)
        assert (answer.status_code, "restricted" in answer.text) == (403, True), answer.text


def instances(scoring: Scoring) -> list[dict[str, Any]]:
    found = [json.loads(file.read_text()) for file in scoring.product.home.glob("instances/*/instance.json")]
    assert len(found) == 2
    return found
