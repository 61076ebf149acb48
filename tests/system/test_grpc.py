"""gRPC with Triton's own client: by metadata and by host name, and what Triton itself keeps
shut."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
from typing import Any

import httpx
import numpy as np
import pytest
import tritonclient.grpc as tritonclient
from tritonclient.utils import InferenceServerException

from ..waiting import DEADLINE_S
from .stock import DOMAIN, PIN, Scoring, grpc_inputs

pytestmark = pytest.mark.serving

X = {"X": ("FP32", np.array([[1, 2, 3, 4]], np.float32))}


def row() -> list[tritonclient.InferInput]:
    return grpc_inputs(X)


def count_from(number: int) -> list[tritonclient.InferInput]:
    return grpc_inputs({"from": ("INT32", np.array([number], np.int32))})


def test_infer_and_what_a_client_asks_about_a_server(scoring: Scoring) -> None:
    with scoring.grpc() as client:
        headers = scoring.metadata()
        assert client.is_server_live(headers=headers) and client.is_model_ready("plain", headers=headers)
        assert client.get_model_metadata("plain", headers=headers).platform == "onnxruntime_onnx"
        assert client.infer("plain", row(), headers=headers).as_numpy("Y").tolist() == [[2, 3, 4, 5]]
        pinned = scoring.metadata(**{PIN: "sums"})
        assert client.get_model_metadata("running_sum", headers=pinned).outputs[0].name == "sum"
        assert not client.is_model_ready("plain", headers=pinned), "it is blue's"


def test_a_host_name_takes_the_place_of_the_metadata(scoring: Scoring) -> None:
    with scoring.grpc_by_host() as client:
        headers = scoring.metadata(**{"amphitrite-endpoint": ""})
        assert client.infer("plain", row(), headers=headers).as_numpy("Y").tolist() == [[2, 3, 4, 5]]
        with pytest.raises(InferenceServerException) as caught:
            client.infer("plain", row())
        assert caught.value.status() == "StatusCode.UNAUTHENTICATED"


def test_the_scoring_uri_is_by_host_and_its_certificate_names_it(scoring: Scoring) -> None:
    product = scoring.product
    host, port = f"types.{DOMAIN}", product.scoring[1]
    assert product.json("endpoint", "show", "-n", "types")["scoring_uri"] == f"https://{host}:{port}/"
    for address, path in ((host, "/"), ("127.0.0.1", "/endpoints/types/")):
        with httpx.Client(verify=scoring.trust, trust_env=False) as client:
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
        "headers = {'amphitrite-endpoint': 'types', 'authorization': sys.argv[2]}\n"
        "assert client.is_server_ready(headers=headers)\n"
    )
    (host, port), told = scoring.product.scoring, scoring.product.json("server", "env", "--shell", "json")
    command = [sys.executable, "-c", script, f"{host}:{port}", f"Bearer {scoring.key}"]
    done = subprocess.run(command, env={**scoring.product.environment, **told}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_async_infer(scoring: Scoring) -> None:
    answers: queue.Queue[Any] = queue.Queue()
    with scoring.grpc() as client:
        for _ in range(5):
            client.async_infer(
                "plain", row(), lambda result, error: answers.put(error or result), headers=scoring.metadata()
            )
        found = [answers.get(timeout=DEADLINE_S) for _ in range(5)]
    assert [answer.as_numpy("Y").tolist() for answer in found] == [[[2, 3, 4, 5]]] * 5


def test_a_decoupled_model_streams_each_answer_as_it_comes(scoring: Scoring) -> None:
    answers: queue.Queue[Any] = queue.Queue()

    def left() -> int:
        answer = answers.get(timeout=DEADLINE_S)
        assert not isinstance(answer, Exception), answer
        return int(answer.as_numpy("left")[0])

    with scoring.grpc() as client:
        client.start_stream(lambda result, error: answers.put(error or result), headers=scoring.metadata())
        client.async_stream_infer("countdown", count_from(2))
        # The model says the next number only when another request lets it: had anybody buffered,
        # this would wait.
        assert left() == 2
        client.async_stream_infer("countdown", count_from(0))
        assert sorted([left(), left(), left()]) == [0, 0, 1]
        client.stop_stream()


@pytest.mark.parametrize(
    ("headers", "status", "says"),
    [
        ({"authorization": "Bearer nope"}, "UNAUTHENTICATED", "none of this endpoint's"),
        ({"authorization": ""}, "UNAUTHENTICATED", "no key"),
        ({"amphitrite-endpoint": "nobody"}, "NOT_FOUND", "no such endpoint"),
        ({"amphitrite-endpoint": ""}, "NOT_FOUND", "amphitrite-endpoint"),
        ({PIN: "red"}, "NOT_FOUND", "no deployment 'red'"),
    ],
)
def test_a_refusal_is_a_status_with_words(scoring: Scoring, headers: dict[str, str], status: str, says: str) -> None:
    with scoring.grpc() as client, pytest.raises(InferenceServerException) as caught:
        client.infer("plain", row(), headers=scoring.metadata(**headers))
    assert caught.value.status() == f"StatusCode.{status}"
    assert says in caught.value.message()


def test_a_model_s_own_failure_stays_as_triton_says_it(scoring: Scoring) -> None:
    with (
        scoring.grpc() as client,
        pytest.raises(InferenceServerException, match="unknown model: 'nothing'") as caught,
    ):
        client.infer("nothing", row(), headers=scoring.metadata())
    assert caught.value.status() == "StatusCode.NOT_FOUND"


STEERING = {
    "repository": lambda client, **how: client.get_model_repository_index(**how),
    "load": lambda client, **how: client.load_model("plain", **how),
    "shared memory": lambda client, **how: client.get_system_shared_memory_status(**how),
    "trace": lambda client, **how: client.get_trace_settings(**how),
    "logging": lambda client, **how: client.get_log_settings(**how),
}


@pytest.mark.parametrize("call", STEERING.values(), ids=STEERING)
def test_what_steers_triton_is_refused_by_the_proxy_and_by_triton(scoring: Scoring, call: Any) -> None:
    with scoring.grpc() as client, pytest.raises(InferenceServerException) as caught:
        call(client, headers=scoring.metadata())
    assert caught.value.status() == "StatusCode.PERMISSION_DENIED"
    for record in instances(scoring):
        with (
            tritonclient.InferenceServerClient(f"unix:{record['sockets']}/grpc:8001") as direct,
            pytest.raises(InferenceServerException, match="restricted"),
        ):
            call(direct)


@pytest.mark.parametrize(
    "path", ["v2/repository/index", "v2/logging", "v2/trace/setting", "v2/systemsharedmemory/status"]
)
def test_the_same_by_http_at_triton_itself(scoring: Scoring, path: str) -> None:
    for record in instances(scoring):
        method = "POST" if path.endswith("index") else "GET"
        with httpx.Client(transport=httpx.HTTPTransport(uds=f"{record['sockets']}/http")) as client:
            answer = client.request(method, f"http://triton/{path}")
        assert (answer.status_code, "restricted" in answer.text) == (403, True), answer.text


def instances(scoring: Scoring) -> list[dict[str, Any]]:
    found = [json.loads(file.read_text()) for file in scoring.product.home.glob("instances/*/instance.json")]
    assert len(found) == 3
    return found
