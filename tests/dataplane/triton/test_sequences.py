"""Sequences of ONNX models in a real Triton, against a Python model of the same arithmetic."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import tritonclient.http as tritonclient  # type: ignore[import-untyped]
from tritonclient.utils import InferenceServerException  # type: ignore[import-untyped]

from amphitrite.dataplane.table.routing_table import Address

from .sequence_models import MODELS, TWIN, Model

pytestmark = pytest.mark.serving
Array = np.ndarray[Any, Any]
BY_NAME = {model.name: model for model in MODELS}


@dataclass(frozen=True)
class Step:
    value: int
    start: bool
    end: bool


def send(
    client: tritonclient.InferenceServerClient, model: str, sequence: int | str, step: Step, **more: Array
) -> dict[str, Array]:
    """One request. Models without batching get no batch."""
    shape = [1] if model in BY_NAME and not BY_NAME[model].batch else [1, 1]
    tensors = []
    for name, value in {"x": np.array([step.value], np.int64), **more}.items():
        tensors.append(tritonclient.InferInput(name, shape, "BYTES" if value.dtype == np.object_ else "INT64"))
        tensors[-1].set_data_from_numpy(value.reshape(shape))
    result = client.infer(
        model, tensors, sequence_id=sequence, sequence_start=step.start, sequence_end=step.end, timeout=30_000_000
    )
    return {o["name"]: result.as_numpy(o["name"]).reshape(-1) for o in result.get_response()["outputs"]}


def generated(seed: int) -> list[list[Step]]:
    """Sequences of one to seven requests. Some begin again in the middle, under the same id; some
    follow another under its id."""
    chance = random.Random(seed)
    made = []
    for _ in range(6):
        steps: list[Step] = []
        for _ in range(chance.randint(1, 2)):
            length = chance.randint(1, 7)
            again = chance.randint(1, 7)
            steps += [Step(chance.randint(-1000, 1000), at in (0, again), at == length - 1) for at in range(length)]
        made.append(steps)
    return made


def answers(address: Address, model: str, sequence: int | str, steps: list[Step]) -> list[dict[str, Any]]:
    with tritonclient.InferenceServerClient(f"{address.host}:{address.port}") as client:
        words = [f"w{step.value}".encode() for step in steps]
        more = [{"word": np.array([word], np.object_)} if model == "seq_words" else {} for word in words]
        received = [send(client, model, sequence, step, **given) for step, given in zip(steps, more, strict=True)]
    if model == "seq_words":
        expected = [b"" if step.start else words[at - 1] for at, step in enumerate(steps)]
        assert [answer["PREVIOUS"].tolist() for answer in received] == [[word] for word in expected]
    return [{name: value.tolist()[0] for name, value in answer.items()} for answer in received]


def ids(kind: str, count: int) -> list[int | str]:
    """Ids within the range of a type."""
    if kind == "STRING":
        return [f"user-{n}/ü" for n in range(count)]
    base = {"UINT64": 2**63, "INT64": 2**40, "UINT32": 2**31, "INT32": 1000}[kind]
    return [base + n for n in range(count)]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
@pytest.mark.parametrize("seed", range(3))
def test_sequences_are_summed_as_the_python_model_sums_them(
    triton: Address, model: Model, seed: int, request: pytest.FixtureRequest
) -> None:
    native = request.node.callspec.params["triton"] == "native"
    kind = model.ids if native or model.ids != "STRING" else "INT64"
    sequences = generated(seed)
    with ThreadPoolExecutor(12) as pool:
        asked = [pool.submit(answers, triton, model.name, i, s) for i, s in zip(ids(kind, 6), sequences, strict=True)]
        twins = [pool.submit(answers, triton, TWIN, i, s) for i, s in zip(ids("INT32", 6), sequences, strict=True)]
    for sequence, mine, twin in zip(ids(kind, 6), asked, twins, strict=True):
        wanted = ["TOTAL", *(f"IS_{name}" for name in model.controls)]
        received = mine.result()
        assert [{name: row[name] for name in wanted} for row in received] == [
            {name: row[name] for name in wanted} for row in twin.result()
        ]
        assert {row["IS_ID"] for row in received} == {sequence.encode() if isinstance(sequence, str) else sequence}


def test_a_sequence_must_start(triton: Address) -> None:
    with tritonclient.InferenceServerClient(f"{triton.host}:{triton.port}") as client:
        send(client, "seq_direct", 5, Step(1, True, True))
        with pytest.raises(InferenceServerException, match="must specify the START flag"):
            send(client, "seq_direct", 5, Step(1, False, False))


def test_a_string_is_no_id_of_numbers(triton: Address) -> None:
    with tritonclient.InferenceServerClient(f"{triton.host}:{triton.port}") as client:
        with pytest.raises(InferenceServerException, match="input 'ID' takes numbers, and the sequence's id is a str"):
            send(client, "seq_direct", "abc", Step(1, True, True))
        assert send(client, "seq_direct", 7, Step(1, True, True))["IS_ID"].tolist() == [7]


def test_a_number_is_an_id_of_strings_by_its_digits(triton: Address, request: pytest.FixtureRequest) -> None:
    if request.node.callspec.params["triton"] != "native":
        pytest.skip("Triton's Python interface refuses ids as strings")
    longest = "x" * 128
    with tritonclient.InferenceServerClient(f"{triton.host}:{triton.port}") as client:
        shown = [send(client, "seq_single", i, Step(1, True, True))["IS_ID"].tolist() for i in (5, longest, "a")]
    assert shown == [[b"5"], [longest.encode()], [b"a"]]
