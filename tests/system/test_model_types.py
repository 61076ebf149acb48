"""Every kind of model and repository that Triton serves, asked through the scoring address by the
stock client and by plain HTTP. One deployment of one repository: tests/system/model_types.
"""

from __future__ import annotations

import gzip
import io
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import tritonclient.http as tritonclient
from PIL import Image
from tritonclient.utils import InferenceServerException

from ..waiting import wait_until
from .stock import ROOT, Array, Scoring

pytestmark = pytest.mark.serving


def fp32(*rows: list[float]) -> tuple[str, Array]:
    return "FP32", np.array(rows, np.float32)


def int32(number: int) -> tuple[str, Array]:
    return "INT32", np.array([number], np.int32)


def text(*words: str | bytes) -> tuple[str, Array]:
    encoded = [word if isinstance(word, bytes) else word.encode() for word in words]
    return "BYTES", np.array(encoded, np.object_)


def picture(color: str, kind: str) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (20, 10), color).save(stream, kind)
    return stream.getvalue()


# -- repositories ----------------------------------------------------------------------------------
def test_one_repository_serves_several_models(scoring: Scoring) -> None:
    models = ["plain", "decode", "classify", "to_label", "label_picture", "greeter", "asks_others", "countdown"]
    with scoring.client() as client:
        assert [m for m in models if not client.is_model_ready(m, headers=scoring.headers)] == []


def test_an_onnx_file_needs_no_config(scoring: Scoring) -> None:
    assert scoring.infer("plain", {"X": fp32([1, 2, 3, 4])}).as_numpy("Y").tolist() == [[2, 3, 4, 5]]
    config = scoring.get("v2/models/plain/config")
    assert (config["backend"], config["max_batch_size"]) == ("onnxruntime", 32)


VERSIONS = [("versions_latest", ["2"], 2), ("versions_all", ["1", "2"], 2), ("versions_specific", ["1"], 1)]


@pytest.mark.parametrize(("model", "served", "newest"), VERSIONS)
def test_the_version_policy_chooses(scoring: Scoring, model: str, served: list[str], newest: int) -> None:
    assert scoring.get(f"v2/models/{model}")["versions"] == served
    assert scoring.infer(model, {"x": int32(0)}).as_numpy("version").tolist() == [newest]
    for version in served:
        assert scoring.infer(model, {"x": int32(0)}, version=version).as_numpy("version").tolist() == [int(version)]
    for version in {"1", "2"} - set(served):
        with pytest.raises(InferenceServerException, match="version"):
            scoring.infer(model, {"x": int32(0)}, version=version)


# -- kinds of models -------------------------------------------------------------------------------
@pytest.mark.parametrize(("color", "kind"), [("red", "JPEG"), ("lime", "PNG"), ("blue", "JPEG")])
def test_an_ensemble_leads_from_an_encoded_picture_to_a_label(scoring: Scoring, color: str, kind: str) -> None:
    data_type, value = text(picture(color, kind))
    answer = scoring.infer("label_picture", {"picture": (data_type, value.reshape(1, 1))})
    assert answer.as_numpy("label").tolist() == [[{"lime": b"green"}.get(color, color.encode())]]


def test_a_step_that_fails_says_why_in_its_own_words(scoring: Scoring) -> None:
    data_type, value = text(b"no picture")
    with pytest.raises(InferenceServerException, match="this is no picture: cannot identify image file"):
        scoring.infer("label_picture", {"picture": (data_type, value.reshape(1, 1))})


def test_a_python_model_reads_its_parameters_and_strings_go_through(scoring: Scoring) -> None:
    names = ["Öznur", "", "名前", 'a "quoted" one']
    greetings = [f"Grüß dich, {name}" for name in names]
    binary = scoring.infer("greeter", {"name": text(*names)}).as_numpy("greeting")
    assert [greeting.decode() for greeting in binary] == greetings
    tensor = {"name": "name", "shape": [len(names)], "datatype": "BYTES", "data": names}
    outputs = scoring.post("v2/models/greeter/infer", {"inputs": [tensor]})["outputs"]
    assert {output["name"]: output["data"] for output in outputs}["greeting"] == greetings


def test_what_a_python_model_prints_is_in_the_log_at_once(scoring: Scoring) -> None:
    scoring.infer("greeter", {"name": text("Ada", "Zoë")})
    log = scoring.product.run("online-deployment", "get-logs", "-n", "blue", "-e", "types").stdout
    assert "greeting Ada Zoë" in log.splitlines()


def test_business_logic_asks_another_model_until_it_is_content(scoring: Scoring) -> None:
    answer = scoring.infer("asks_others", {"X": fp32([1, 2, 3, 4], [9, 9, 9, 9])})
    assert answer.as_numpy("Y").tolist() == [[10, 11, 12, 13], [18, 18, 18, 18]]


def test_a_decoupled_model_streams_each_answer_as_it_comes(scoring: Scoring) -> None:
    connection = scoring.product.connection()
    body = json.dumps({"from": 2}).encode()
    connection.request("POST", f"{ROOT}/v2/models/countdown/generate_stream", body=body, headers=scoring.headers)
    answer = connection.getresponse()
    assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    # The model says the next number only when another request lets it: had anybody buffered, this
    # would wait for ever.
    assert event(answer)["left"] == 2
    assert scoring.product.request(
        f"{ROOT}/v2/models/countdown/generate", key=scoring.key, body=json.dumps({"from": 0}).encode()
    ).status == 200  # fmt: skip
    assert [event(answer)["left"], event(answer)["left"]] == [1, 0]
    assert answer.read() == b""
    connection.close()


def event(stream: Any) -> Any:
    """The next server-sent event."""
    line = stream.readline()
    assert line.startswith(b"data: "), line
    assert stream.readline() == b"\n"
    return json.loads(line[6:])


# -- what config.pbtxt switches on -----------------------------------------------------------------
def test_dynamic_batching_joins_requests(scoring: Scoring) -> None:
    def highest(index: int) -> int:
        scores = np.eye(3, dtype=np.float32)[index % 3].reshape(1, 3)
        return int(scoring.infer("classify", {"colors": ("FP32", scores)}).as_numpy("scores").argmax())

    with ThreadPoolExecutor(12) as pool:
        assert list(pool.map(highest, range(24))) == [index % 3 for index in range(24)]
    found = scoring.statistics("classify")
    assert found["execution_count"] < found["inference_count"]
    assert max(row["batch_size"] for row in found["batch_stats"]) > 1


def test_instances_work_at_the_same_time(scoring: Scoring, tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(scoring.infer, "twins", {"meeting": text(str(tmp_path))}) for _ in range(2)]
        names = {answer.result().as_numpy("instance")[0].decode() for answer in asked}
    assert {name.rpartition("_")[0] for name in names} == {"left", "right"}


def test_the_response_cache_answers_without_the_model(scoring: Scoring) -> None:
    answers = [scoring.infer("cached", {"x": int32(7)}).as_numpy("executions").tolist() for _ in range(3)]
    other = scoring.infer("cached", {"x": int32(8)}).as_numpy("executions").tolist()
    assert (answers, other) == ([[1], [1], [1]], [2])
    found = scoring.statistics("cached")["inference_stats"]
    assert (found["cache_hit"]["count"], found["cache_miss"]["count"]) == (2, 2)


def test_warm_up_runs_before_the_first_request(scoring: Scoring) -> None:
    assert scoring.infer("greeter", {"name": text("you")}).as_numpy("executions")[0] >= 3


# -- the protocol ----------------------------------------------------------------------------------
def test_the_classification_extension_names_the_classes(scoring: Scoring) -> None:
    wanted = [tritonclient.InferRequestedOutput("scores", class_count=2)]
    answer = scoring.infer("classify", {"colors": fp32([0.5, 0.25, 1])}, outputs=wanted)
    assert answer.as_numpy("scores").tolist() == [[b"1.000000:2:blue", b"0.500000:0:red"]]


def test_json_and_binary_say_the_same(scoring: Scoring) -> None:
    tensor = {"name": "X", "shape": [1, 4], "datatype": "FP32", "data": [[0.5, 1, -1, 1e9]]}
    (output,) = scoring.post("v2/models/plain/infer", {"inputs": [tensor]})["outputs"]
    binary = scoring.infer("plain", {"X": fp32([0.5, 1, -1, 1e9])}).as_numpy("Y")
    assert (output["data"], output["shape"]) == (binary.reshape(-1).tolist(), [1, 4])


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_bodies_are_compressed_both_ways(scoring: Scoring, algorithm: str) -> None:
    many = np.zeros((32, 4), np.float32)
    options = {"request_compression_algorithm": algorithm, "response_compression_algorithm": algorithm}
    assert (scoring.infer("plain", {"X": ("FP32", many)}, **options).as_numpy("Y") == 1).all()


def test_a_compressed_answer_is_compressed(scoring: Scoring) -> None:
    body = json.dumps({"inputs": [{"name": "X", "shape": [32, 4], "datatype": "FP32", "data": [0] * 128}]}).encode()
    headers = {"Content-Encoding": "gzip", "Accept-Encoding": "gzip"}
    answer = scoring.product.request(
        f"{ROOT}/v2/models/plain/infer", key=scoring.key, body=gzip.compress(body), headers=headers
    )
    assert (answer.status, answer.headers["content-encoding"]) == (200, "gzip")
    assert json.loads(gzip.decompress(answer.body))["outputs"][0]["data"] == [1] * 128


SHARED_MEMORY = [
    ("GET", "v2/systemsharedmemory/status"),
    ("POST", "v2/systemsharedmemory/region/x/register"),
    ("POST", "v2/cudasharedmemory/region/x/register"),
]


@pytest.mark.parametrize(("method", "path"), SHARED_MEMORY)
def test_shared_memory_cannot_be_registered(scoring: Scoring, method: str, path: str) -> None:
    body = b"{}" if method == "POST" else None
    answer = scoring.product.request(f"{ROOT}/{path}", method=method, key=scoring.key, body=body)
    assert (answer.status, answer.error["code"]) == (403, "Forbidden")


def test_a_request_by_shared_memory_is_refused(scoring: Scoring) -> None:
    where = {"shared_memory_region": "mine", "shared_memory_byte_size": 16}
    tensor = {"name": "X", "shape": [1, 4], "datatype": "FP32", "parameters": where}
    body = json.dumps({"inputs": [tensor]}).encode()
    answer = scoring.product.request(f"{ROOT}/v2/models/plain/infer", key=scoring.key, body=body)
    assert answer.status == 424
    assert "shared memory region: 'mine'" in answer.body.decode()


# -- work that nobody waits for --------------------------------------------------------------------
@pytest.mark.parametrize(("model", "executions"), [("waits", 3), ("waits_briefly", 2)])
def test_work_that_was_given_up(scoring: Scoring, tmp_path: Path, model: str, executions: int) -> None:
    """The proxy lets go of it at once. Triton 2.51 is not told over HTTP: what queues there is run
    all the same, unless the model's queue policy rejects what has waited too long."""
    path = f"{ROOT}/v2/models/{model}/infer"
    first, given_up, last = (tmp_path / name for name in ("first", "given-up", "last"))
    with ThreadPoolExecutor(1) as pool:
        one = pool.submit(scoring.product.request, path, key=scoring.key, body=waiting_for(first))
        try:
            wait_until(lambda: first.with_suffix(".begun").exists(), "the first runs", 10)
            connection = scoring.product.connection()
            connection.request("POST", path, body=waiting_for(given_up), headers=scoring.headers)
            wait_until(lambda: in_flight(scoring) == 2, "the second queues", 10)
            too_long = time.monotonic() + 0.2
            connection.close()
            wait_until(lambda: in_flight(scoring) == 1, "the proxy has let go of the second", 10)
            wait_until(lambda: time.monotonic() > too_long, "the second has waited too long")
        finally:
            for until in (given_up, last, first):
                until.touch()
        assert one.result().status == 200
    answer = scoring.product.request(path, key=scoring.key, body=waiting_for(last))
    assert json.loads(answer.body)["outputs"][0]["data"] == [executions]


def waiting_for(path: Path) -> bytes:
    tensor = {"name": "until", "shape": [1, 1], "datatype": "BYTES", "data": [str(path)]}
    return json.dumps({"inputs": [tensor]}).encode()


def in_flight(scoring: Scoring) -> int:
    """Requests that the proxy has sent to the deployment and that are not answered."""
    transport = httpx.HTTPTransport(uds=str(next(scoring.product.home.rglob("envoy-admin.sock"))))
    with httpx.Client(transport=transport) as admin:
        lines = admin.get("http://envoy/clusters").text.splitlines()
    counts = [line for line in lines if line.startswith("types-blue-") and "::rq_active::" in line]
    return sum(int(line.rpartition("::")[2]) for line in counts)
