"""The ONNX Runtime backend inside a real Triton, asked by the stock client."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
import pytest
import tritonclient.http as tritonclient  # type: ignore[import-untyped]
from tritonclient.utils import InferenceServerException, triton_to_np_dtype  # type: ignore[import-untyped]

from amphitrite.dataplane.table.routing_table import Address
from amphitrite.dataplane.triton import http_api

from ...waiting import wait_until
from .onnx_models import EXAMPLE, SINGLE_MODEL, TYPES

pytestmark = pytest.mark.serving
Array = np.ndarray[Any, Any]


@pytest.fixture
def triton_client(triton: Address) -> Iterator[tritonclient.InferenceServerClient]:
    with tritonclient.InferenceServerClient(f"{triton.host}:{triton.port}") as made:
        yield made


def infer(
    address: Address, model: str, inputs: dict[str, tuple[str, Array]], *outputs: str, binary: bool = True
) -> dict[str, Array]:
    """Asked with a client of its own, because the stock one belongs to one thread. FP16 has no JSON
    form."""
    with tritonclient.InferenceServerClient(f"{address.host}:{address.port}") as made:
        tensors = []
        for name, (datatype, value) in inputs.items():
            tensors.append(tritonclient.InferInput(name, list(value.shape), datatype))
            tensors[-1].set_data_from_numpy(value, binary_data=binary or datatype == "FP16")
        wanted = [tritonclient.InferRequestedOutput(name, binary_data=binary) for name in outputs] or None
        result = made.infer(model, tensors, outputs=wanted)
        return {o["name"]: result.as_numpy(o["name"]) for o in result.get_response()["outputs"]}


def of_type(datatype: str) -> Array:
    if datatype == "BYTES":
        return np.array([[b"a", "ü".encode(), b"x\0y"], [b"", b"b'a'", b"z" * 1000]], dtype=np.object_)
    values = np.array([[0, 1, 2], [3, 100, 127]]).astype(triton_to_np_dtype(datatype))
    return values * values.dtype.type(0.5) if datatype.startswith("FP") else values


def test_every_shared_type_goes_through_unchanged(triton: Address) -> None:
    sent = {f"in_{name}": (name, of_type(name)) for name in TYPES}
    received = infer(triton, "types", sent)
    for name in TYPES:
        assert received[f"out_{name}"].dtype == of_type(name).dtype
        assert received[f"out_{name}"].tolist() == of_type(name).tolist()


def test_tensors_without_elements_go_through(triton: Address) -> None:
    sent = {f"in_{name}": (name, of_type(name)[:, :0]) for name in TYPES}
    assert {value.shape for value in infer(triton, "types", sent).values()} == {(2, 0)}
    assert infer(triton, "sequence", {"x": ("FP32", np.zeros(0, np.float32))})["y"].shape == (0,)


def test_json_tensors_go_through(triton: Address) -> None:
    sent = {f"in_{name}": (name, of_type(name)) for name in TYPES}
    text = np.array([["a", "ü", ""], ["b", "c", "d"]], dtype=np.object_)
    sent["in_BYTES"] = ("BYTES", np.vectorize(str.encode, otypes=[object])(text))
    others = [f"out_{name}" for name in TYPES if name != "FP16"]
    received = infer(triton, "types", sent, *others, binary=False)
    assert received["out_BYTES"].tolist() == text.tolist()
    assert received["out_FP64"].tolist() == of_type("FP64").tolist()
    assert received["out_UINT64"].tolist() == of_type("UINT64").tolist()
    assert received["out_BOOL"].tolist() == of_type("BOOL").tolist()


def test_the_example_answers_the_same_on_every_cpu(triton: Address) -> None:
    """0.900 on one without VNNI, were the sums of 8-bit products left to overflow."""
    score = runpy.run_path(str(SINGLE_MODEL / "score.py"))
    batch = score["preprocess"](SINGLE_MODEL / "chelsea.png")
    logits = infer(triton, "model_1", {"data_0": ("FP32", batch)}, "fc6_1")["fc6_1"]
    labels = (SINGLE_MODEL / "imagenet-labels.txt").read_text(encoding="utf-8").splitlines()
    label, probability = score["best"](logits[0], labels)
    assert (label, probability) == ("EGYPTIAN CAT", pytest.approx(0.765, abs=0.01))


CONFIGURED = [
    ("types", 32, [-1], [-1]),
    ("sequence", 0, [-1], [-1]),
    ("scalar", 0, [1], [-1]),
    ("configured", 64, [1], [1]),
    ("pick", 32, [1], [1]),
    ("model_1", 32, [3, 224, 224], [1000]),
]


@pytest.mark.parametrize(("model", "size", "inputs", "outputs"), CONFIGURED)
def test_the_configuration_that_triton_has(
    triton_client: tritonclient.InferenceServerClient, model: str, size: int, inputs: list[int], outputs: list[int]
) -> None:
    config = triton_client.get_model_config(model)
    assert (config["backend"], config["max_batch_size"]) == ("onnxruntime", size)
    assert (config["input"][0]["dims"], config["output"][0]["dims"]) == (inputs, outputs)
    assert ("dynamic_batching" in config) == (size > 0)


def test_scalars_and_reshaped_batches(triton: Address) -> None:
    assert infer(triton, "scalar", {"x": ("FP32", np.array([3], np.float32))})["y"].tolist() == [-3]
    batch = np.array([[1], [2]], np.float32)
    assert infer(triton, "configured", {"x": ("FP32", batch)})["y"].tolist() == [[-1], [-2]]


def test_concurrent_requests_run_together_and_get_their_own_answers(
    triton: Address, triton_client: tritonclient.InferenceServerClient
) -> None:
    def pick(index: int) -> float:
        rows = np.full((index % 3 + 1, 1), index, np.int64)
        answer = infer(triton, "pick", {"x": ("INT64", rows)}, "y")["y"]
        assert answer.shape == rows.shape
        return float(answer[0, 0])

    with ThreadPoolExecutor(12) as pool:
        assert list(pool.map(pick, range(48))) == [10.0 * i for i in range(48)]
    (stats,) = triton_client.get_inference_statistics("pick")["model_stats"]
    assert stats["execution_count"] < stats["inference_count"]


def test_one_bad_request_of_a_batch_fails_alone(triton: Address) -> None:
    def pick(index: int) -> str:
        try:
            return str(infer(triton, "pick", {"x": ("INT64", np.array([[index]]))}, "y")["y"][0, 0])
        except InferenceServerException as exc:
            return exc.message() or ""

    with ThreadPoolExecutor(8) as pool:
        good, bad = list(pool.map(pick, range(7))), pool.submit(pick, 1000).result()
    assert good == [f"{10.0 * i}" for i in range(7)]
    assert "indices element out of data bounds" in bad


def test_the_counters_are_true(
    triton: Address, triton_client: tritonclient.InferenceServerClient, request: pytest.FixtureRequest
) -> None:
    def counted() -> list[int]:
        (stats,) = triton_client.get_inference_statistics("liar")["model_stats"]
        told = stats["inference_stats"]
        return [stats["inference_count"], stats["execution_count"], told["success"]["count"], told["fail"]["count"]]

    def risen_by() -> list[int]:
        return [now - then for now, then in zip(counted(), before, strict=True)]

    before = counted()
    infer(triton, "liar", {"x": ("FP32", np.ones((1, 3), np.float32))})
    # Counted is after the answer.
    wait_until(lambda: risen_by() == [1, 1, 1, 0], "the request is counted", detail=lambda: str(risen_by()))
    with pytest.raises(InferenceServerException, match="for a batch of 2"):
        infer(triton, "liar", {"x": ("FP32", np.ones((2, 3), np.float32))})
    # Triton's Python backend takes an answer that is an error for a success.
    succeeded, failed = (1, 1) if request.node.callspec.params["triton"] == "native" else (2, 0)
    wait_until(lambda: risen_by()[2:] == [succeeded, failed], "it is counted too", detail=lambda: str(risen_by()))


MALFORMED = [b"", b"\1\0\0", b"\xe8\3\0\0abc", b"\xff\xff\xff\xffabc", b"\1\0\0\0a\1\0\0\0b"]


@pytest.mark.parametrize("raw", MALFORMED, ids=["empty", "cut", "short", "negative", "more"])
def test_malformed_strings_are_refused(triton: Address, raw: bytes) -> None:
    with tritonclient.InferenceServerClient(f"{triton.host}:{triton.port}") as made:
        tensors = []
        for name in TYPES:
            tensors.append(tritonclient.InferInput(f"in_{name}", [1, 1], name))
            tensors[-1].set_data_from_numpy(of_type(name)[:1, :1])
            if name == "BYTES":  # One string, as no decent client writes it.
                tensors[-1]._raw_data, tensors[-1]._parameters["binary_data_size"] = raw, len(raw)
        with pytest.raises(InferenceServerException) as caught:
            made.infer("types", tensors)
        assert "in_BYTES" in (caught.value.message() or "")


def test_only_requested_outputs_come_back(triton: Address) -> None:
    one = {"x": ("INT64", np.array([[5]]))}
    assert infer(triton, "pick", one, "which") == {"which": np.array([[5]])}
    assert sorted(infer(triton, "pick", one)) == ["which", "y"]


def test_the_example_model_gives_what_onnxruntime_gives(triton: Address) -> None:
    pictures = np.random.default_rng(1).uniform(-1, 1, (2, 3, 224, 224)).astype(np.float32)
    (alone,) = onnxruntime.InferenceSession(EXAMPLE / "1" / "model.onnx").run(None, {"data_0": pictures})
    served = infer(triton, "model_1", {"data_0": ("FP32", pictures)})["fc6_1"]
    assert served.shape == (2, 1000)
    assert np.allclose(served, alone, atol=1e-4)


ERRORS = [
    ("pick", {"x": ("INT64", np.zeros((1, 2), np.int64))}, ["'x'", "[-1,1]", "[1,2]"]),
    ("pick", {"x": ("FP32", np.zeros((1, 1), np.float32))}, ["'x'", "FP32", "INT64"]),
    ("pick", {"x": ("INT64", np.zeros((33, 1), np.int64))}, ["batch-size must be <= 32"]),
    ("pick", {"z": ("INT64", np.zeros((1, 1), np.int64))}, ["'z'"]),
    ("liar", {"x": ("FP32", np.ones((2, 3), np.float32))}, ["output 'y' has the shape [1, 3] for a batch of 2"]),
    (
        "types",
        {f"in_{n}": (n, np.array([[b"\xff"]], np.object_) if n == "BYTES" else of_type(n)[:1, :1]) for n in TYPES},
        ["input 'in_BYTES' holds a string that is not UTF-8"],
    ),
]


@pytest.mark.parametrize(("model", "inputs", "words"), ERRORS, ids=[row[2][-1][:30] for row in ERRORS])
def test_an_error_names_the_tensor(
    triton: Address, model: str, inputs: dict[str, tuple[str, Array]], words: list[str]
) -> None:
    with pytest.raises(InferenceServerException) as caught:
        infer(triton, model, inputs)
    message = caught.value.message() or ""
    assert [word for word in words if word not in message] == []
    assert "Traceback" not in message


def test_probes(triton: Address) -> None:
    assert http_api.live(triton, 2)
    assert http_api.ready(triton, ["pick", "types"], 2)
    assert not http_api.ready(triton, ["pick", "no such model"], 2)
    assert http_api.backend(triton, "pick", 2) == "onnxruntime"
    assert (http_api.version(triton, 2) or "").startswith("2.")


def test_probes_of_nobody() -> None:
    nobody = Address("127.0.0.1", 1)
    assert not http_api.live(nobody, 1)
    assert not http_api.ready(nobody, ["m"], 1)
    assert (http_api.version(nobody, 1), http_api.backend(nobody, "m", 1)) == (None, None)
