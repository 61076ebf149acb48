"""What Triton's own clients can do, through the scoring address, as they come from PyPI: by HTTP
and gRPC, at once, later and by ``asyncio``, compressed, streamed, 100 MB at a time, in sequences.
``test_grpc`` has what is gRPC's alone.
"""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

from ..waiting import DEADLINE_S
from .stock import PIN, Array, Scoring, grpc_inputs, http_inputs

pytestmark = pytest.mark.serving

ROW = {"X": ("FP32", np.array([[1, 2, 3, 4]], np.float32))}
SUM = [[2, 3, 4, 5]]
ANSWERS = 5
Algorithm = str | None


def asked(found: Any) -> list[list[float]]:
    values: list[list[float]] = found.as_numpy("Y").tolist()
    return values


# -- what can be asked about a server --------------------------------------------------------------
def told(client: Any, headers: dict[str, str], **form: Any) -> dict[str, Any]:
    """What any client can ask; ``form``: how a client of gRPC is told to answer as one of HTTP
    does."""
    return {
        "live": client.is_server_live(headers=headers),
        "ready": client.is_server_ready(headers=headers),
        "model": client.is_model_ready("plain", headers=headers),
        "server": client.get_server_metadata(headers=headers, **form)["name"],
        "version": client.get_server_metadata(headers=headers, **form)["version"],
        "inputs": client.get_model_metadata("plain", headers=headers, **form)["inputs"][0]["name"],
        "config": client.get_model_config("plain", headers=headers, **form),
        "statistics": client.get_inference_statistics("plain", headers=headers, **form)["model_stats"][0]["name"],
    }


def test_both_protocols_tell_the_same_about_a_server(scoring: Scoring) -> None:
    with scoring.client() as client:
        by_http = told(client, scoring.headers)
    with scoring.grpc() as client:
        by_grpc = told(client, scoring.metadata(), as_json=True)
    assert by_http["live"] and by_http["ready"] and by_http["model"]
    backends = by_http.pop("config")["backend"], by_grpc.pop("config")["config"]["backend"]
    assert backends == ("onnxruntime", "onnxruntime")
    assert by_http == by_grpc
    assert by_http["server"] == "triton", "and nothing about which instance answers"


# -- now and later ---------------------------------------------------------------------------------
@pytest.mark.parametrize("binary", [True, False], ids=["binary", "JSON"])
def test_http_at_once_and_later(scoring: Scoring, binary: bool) -> None:
    inputs = http_inputs(ROW, binary=binary)
    outputs = [tritonclient.http.InferRequestedOutput("Y", binary_data=binary)]
    with scoring.client(concurrency=ANSWERS) as client:
        assert asked(client.infer("plain", inputs, outputs=outputs, headers=scoring.headers)) == SUM
        later = [
            client.async_infer("plain", inputs, outputs=outputs, request_id=str(number), headers=scoring.headers)
            for number in range(ANSWERS)
        ]
        found = [one.get_result(timeout=DEADLINE_S) for one in later]
    assert [asked(one) for one in found] == [SUM] * ANSWERS
    assert [one.get_response()["id"] for one in found] == [str(number) for number in range(ANSWERS)]


def test_asyncio(scoring: Scoring) -> None:
    async def ask() -> tuple[list[Any], bool, bool]:
        async with scoring.aio() as by_http, scoring.grpc_aio() as by_grpc:
            headers, metadata = scoring.headers, scoring.metadata()
            calls = [by_http.infer("plain", http_inputs(ROW), headers=headers) for _ in range(ANSWERS)]
            calls += [by_grpc.infer("plain", grpc_inputs(ROW), headers=metadata) for _ in range(ANSWERS)]
            found = await asyncio.gather(*calls)
            ready = await by_http.is_model_ready("plain", headers=headers)
            return found, ready, await by_grpc.is_model_ready("plain", headers=metadata)

    found, *ready = asyncio.run(ask())
    assert [asked(one) for one in found] == [SUM] * 2 * ANSWERS
    assert ready == [True, True]


def test_asyncio_by_a_stream(scoring: Scoring) -> None:
    async def requests() -> Any:
        for number in range(ANSWERS):
            yield {"model_name": "plain", "inputs": grpc_inputs(ROW), "request_id": str(number)}

    async def ask() -> list[tuple[Any, Any]]:
        async with scoring.grpc_aio() as client:
            stream = client.stream_infer(requests(), headers=scoring.metadata())
            return [one async for one in stream]

    found = asyncio.run(ask())
    assert [error for _, error in found] == [None] * ANSWERS
    assert {one.get_response().id for one, _ in found} == {str(number) for number in range(ANSWERS)}


def test_a_call_can_be_cancelled(scoring: Scoring) -> None:
    answers: queue.Queue[Any] = queue.Queue()
    with scoring.grpc() as client:
        until = grpc_inputs({"from": ("INT32", np.array([1], np.int32))})
        client.start_stream(lambda result, error: answers.put(error or result), headers=scoring.metadata())
        client.async_stream_infer("countdown", until)
        assert answers.get(timeout=DEADLINE_S).as_numpy("left").tolist() == [1]
        client.stop_stream(cancel_requests=True)
        error = answers.get(timeout=DEADLINE_S)
    assert isinstance(error, InferenceServerException) and error.status() == "StatusCode.CANCELLED"
    # The model looks at nothing of that: it waits to go on, and Triton would wait for it at its
    # end.
    scoring.post("v2/models/countdown/generate", {"from": 0})


# -- compression -----------------------------------------------------------------------------------
@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_what_is_compressed_is_compressed(scoring: Scoring, algorithm: str) -> None:
    options = {"request_compression_algorithm": algorithm, "response_compression_algorithm": algorithm}
    many = np.zeros((32, 4), np.float32)
    with scoring.client() as client:
        inputs = http_inputs({"X": ("FP32", many)})
        found = client.infer("plain", inputs, headers=scoring.headers, **options)
        later = client.async_infer("plain", inputs, headers=scoring.headers, **options).get_result()

    async def ask() -> Any:
        async with scoring.aio() as client:
            return await client.infer("plain", inputs, headers=scoring.headers, **options)

    for one in (found, later, asyncio.run(ask())):
        assert (one.as_numpy("Y") == 1).all()
    with scoring.grpc() as by_grpc:
        found = by_grpc.infer("plain", grpc_inputs(ROW), headers=scoring.metadata(), compression_algorithm=algorithm)
    assert asked(found) == SUM


# -- 100 MB ----------------------------------------------------------------------------------------
def large() -> dict[str, tuple[str, Array]]:
    return {"x": ("FP32", np.arange(25_000_000, dtype=np.float32))}


def by_http(scoring: Scoring, values: dict[str, tuple[str, Array]]) -> Any:
    with scoring.client() as client:
        return client.infer("echo", http_inputs(values), headers=scoring.headers)


def by_grpc(scoring: Scoring, values: dict[str, tuple[str, Array]]) -> Any:
    with scoring.grpc() as client:
        return client.infer("echo", grpc_inputs(values), headers=scoring.metadata())


@pytest.mark.parametrize("ask", [by_http, by_grpc])
def test_100_mb_there_and_back(scoring: Scoring, ask: Callable[..., Any]) -> None:
    values = large()
    assert np.array_equal(ask(scoring, values).as_numpy("y"), values["x"][1])


# -- sequences -------------------------------------------------------------------------------------
#: Many, so that with two instances it is certain that both have some of them.
SEQUENCES = range(1, 13)
STEPS = 4
Step = Callable[..., Any]


@contextmanager
def http_steps(scoring: Scoring) -> Iterator[Step]:
    with scoring.client() as client:

        def step(value: Array, *, binary: bool, **sequence: Any) -> Any:
            inputs = http_inputs({"x": ("INT32", value)}, binary=binary)
            # The client adds to what it is given, so that the same headers are good for one
            # request.
            headers = {**scoring.headers, PIN: "sums"}
            return client.infer("running_sum", inputs, headers=headers, **sequence)

        yield step


@contextmanager
def grpc_steps(scoring: Scoring) -> Iterator[Step]:
    with scoring.grpc() as client:
        headers = scoring.metadata(**{PIN: "sums"})

        def step(value: Array, *, binary: bool, **sequence: Any) -> Any:
            inputs = grpc_inputs({"x": ("INT32", value)})
            return client.infer("running_sum", inputs, headers=headers, **sequence)

        yield step


@pytest.mark.parametrize("steps", [http_steps, grpc_steps])
def test_sequences_stay_where_their_state_is(scoring: Scoring, steps: Any) -> None:
    workers = set()
    with steps(scoring) as step:
        for number in range(STEPS):
            for sequence in SEQUENCES:
                found = step(
                    np.array([[sequence]], np.int32),
                    binary=number % 2 == 0,
                    sequence_id=sequence,
                    sequence_start=number == 0,
                    sequence_end=number == STEPS - 1,
                )
                assert found.as_numpy("sum").tolist() == [[sequence * (number + 1)]]
                workers.add((sequence, int(found.as_numpy("worker").flat[0])))
    assert len(workers) == len(SEQUENCES), "each has stayed"
    assert len({worker for _, worker in workers}) == 2, "they are spread"


def test_a_stream_stays_on_one_instance_with_all_its_sequences(scoring: Scoring) -> None:
    workers = set()
    for _ in range(3):
        answers: queue.Queue[Any] = queue.Queue()
        with scoring.grpc() as client:
            headers = scoring.metadata(**{PIN: "sums"})
            client.start_stream(lambda result, error, to=answers: to.put(error or result), headers=headers)
            for number in range(STEPS):
                for sequence in SEQUENCES:
                    client.async_stream_infer(
                        "running_sum",
                        grpc_inputs({"x": ("INT32", np.array([[sequence]], np.int32))}),
                        sequence_id=sequence,
                        sequence_start=number == 0,
                        sequence_end=number == STEPS - 1,
                    )
            found = [answers.get(timeout=DEADLINE_S) for _ in range(STEPS * len(SEQUENCES))]
            client.stop_stream()
        assert sorted(int(one.as_numpy("sum").flat[0]) for one in found) == sorted(
            sequence * (number + 1) for number in range(STEPS) for sequence in SEQUENCES
        )
        here = {int(one.as_numpy("worker").flat[0]) for one in found}
        assert len(here) == 1
        workers |= here
