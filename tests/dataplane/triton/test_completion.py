"""Rows: what an ONNX file declares, what config.pbtxt says, and the configuration that comes out of
both backends."""

from __future__ import annotations

from typing import Any

import pytest

from amphitrite.dataplane.triton.backends.onnxruntime.completion import batching_obstacle
from amphitrite.dataplane.triton.backends.onnxruntime.sequences import State
from amphitrite.dataplane.triton.backends.onnxruntime.tensors import TYPES, Dimension, Tensor
from amphitrite.schemas.errors import Error

from .completions import BOTH, Complete


@pytest.fixture(params=BOTH)
def complete(request: pytest.FixtureRequest) -> Complete:
    return BOTH[request.param]


def x(*shape: Dimension, type: str = "tensor(float)", name: str = "x") -> Tensor:
    return Tensor("input", name, type, shape)


def y(*shape: Dimension, type: str = "tensor(float)", name: str = "y") -> Tensor:
    return Tensor("output", name, type, shape)


def config(**fields: Any) -> dict[str, Any]:
    return {"max_batch_size": 0, "input": [], "output": [], **fields}


def entry(name: str, *dims: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "data_type": "TYPE_FP32", "dims": list(dims), **more}


EMPTY_RESHAPE: dict[str, Any] = {"reshape": {"shape": []}}

COMPLETED = [
    ("one symbol everywhere", config(), [x("N", 3), y("N", 2)], 32, [3], [2]),
    ("a variable dimension beside the batch", config(), [x("N", "T"), y("N", "T", 2)], 32, [-1], [-1, 2]),
    ("different symbols", config(), [x("N", 3), y("M", 3)], 0, [-1, 3], [-1, 3]),
    ("a fixed output", config(), [x("N", 3), y(1, 3)], 0, [-1, 3], [1, 3]),
    ("unnamed", config(), [x(None, 3), y(None, 3)], 0, [-1, 3], [-1, 3]),
    ("one dimension", config(), [x("N"), y("N")], 0, [-1], [-1]),
    ("a lone dimension of the output", config(), [x("N", 3), y("N")], 0, [-1, 3], [-1]),
    ("the batch inside", config(), [x("N", 3), y("N", "N")], 0, [-1, 3], [-1, -1]),
    ("a scalar", config(), [x(), y()], 0, [1], [-1]),
    ("all fixed", config(), [x(2, 3), y(2, 3)], 0, [2, 3], [2, 3]),
    ("a size of one's own", config(max_batch_size=64), [x("N", 3), y("N", 3)], 64, [3], [3]),
    ("a size below ours", config(max_batch_size=4), [x("N", 3), y("N", 3)], 4, [3], [3]),
    ("a size makes unnamed a batch", config(max_batch_size=8), [x(None, 3), y("M", 3)], 8, [3], [3]),
    ("dims in full: no batching", config(input=[entry("x", -1, 3)]), [x("N", 3), y("N", 3)], 0, [-1, 3], [-1, 3]),
    ("a narrower dim", config(max_batch_size=8, input=[entry("x", 7)]), [x("N", "T"), y("N", "T")], 8, [7], [-1]),
    ("the name alone", config(input=[{"name": "x"}]), [x("N", 3), y("N", 3)], 32, [3], [3]),
]


@pytest.mark.parametrize(
    ("given", "tensors", "size", "inputs", "outputs"), [r[1:] for r in COMPLETED], ids=[r[0] for r in COMPLETED]
)
def test_completed(
    complete: Complete,
    given: dict[str, Any],
    tensors: list[Tensor],
    size: int,
    inputs: list[int],
    outputs: list[int],
) -> None:
    completion = complete(given, tensors)
    assert completion.max_batch_size == size
    assert [e["dims"] for e in completion.inputs] == [inputs]
    assert [e["dims"] for e in completion.outputs] == [outputs]
    again = config(max_batch_size=size, input=list(completion.inputs), output=list(completion.outputs))
    assert complete(again, tensors).inputs == completion.inputs, "Triton hands a completed configuration back to us"


def test_a_batch_of_scalars_travels_with_one_dimension(complete: Complete) -> None:
    completion = complete(config(max_batch_size=8), [x("N"), y("N")])
    assert completion.inputs == (entry("x", 1, **EMPTY_RESHAPE),)
    assert completion.outputs == (entry("y", 1, **EMPTY_RESHAPE),)


def test_only_the_named_outputs_are_served(complete: Complete) -> None:
    odd = y(type="seq(map(int64,tensor(float)))", name="odd")
    completion = complete(config(output=[entry("y", 3)], max_batch_size=8), [x("N", 3), y("N", 3), odd])
    assert [e["name"] for e in completion.outputs] == ["y"]


def test_every_shared_type_has_a_name_in_triton(complete: Complete) -> None:
    for type_, (name, _) in TYPES.items():
        completion = complete(config(), [x("N", 3, type=type_), y("N", 3, type=type_)])
        assert [e["data_type"] for e in (*completion.inputs, *completion.outputs)] == [name, name]


def sequences(*controls: dict[str, Any], states: list[dict[str, Any]] | None = None, **more: Any) -> dict[str, Any]:
    return config(sequence_batching={"control_input": list(controls), "state": states or []}, **more)


def control(name: str, **values: Any) -> dict[str, Any]:
    return {"name": name, "control": [{"kind": "CONTROL_SEQUENCE_START", **values}]}


def state(taken: str, given: str, *dims: int, **more: Any) -> dict[str, Any]:
    return {"input_name": taken, "output_name": given, "data_type": "TYPE_FP32", "dims": list(dims), **more}


START = control("start", int32_false_true=[0, 1])
STEP = [x("N", 1), x("N", 1, name="start", type="tensor(int32)"), x("N", 4, name="s"), y("N", 1), y("N", 4, name="t")]


def test_controls_and_states_are_not_asked_of_clients(complete: Complete) -> None:
    completion = complete(sequences(START, states=[state("s", "t", 4)]), STEP)
    assert completion.max_batch_size == 32
    assert [e["name"] for e in completion.inputs] == ["x"]
    assert [e["name"] for e in completion.outputs] == ["y"]
    assert completion.states == (State("s", "t", zero=True),)


def test_a_state_that_config_lists_is_an_output_too(complete: Complete) -> None:
    initial = {"data_type": "TYPE_FP32", "dims": [4], "zero_data": True, "name": "first"}
    states = [state("s", "t", 4, initial_state=[initial])]
    completion = complete(sequences(START, states=states, max_batch_size=4, output=[entry("t", 4)]), STEP)
    assert [e["name"] for e in completion.outputs] == ["t"]
    assert completion.states == (State("s", "t", zero=False),)


BEGINS_LONG = {"initial_state": [{"data_type": "TYPE_FP32", "dims": [3], "zero_data": True, "name": "first"}]}

REFUSED = [
    (sequences(control("z", int32_false_true=[0, 1])), STEP, "control input 'z', the model has ['x', 'start', 's']"),
    (sequences(control("start", fp32_false_true=[0, 1])), STEP, "TYPE_FP32 for control input 'start', the model TYPE_"),
    (sequences(control("start", data_type="TYPE_UINT64")), STEP, "has TYPE_UINT64 for control input 'start'"),
    (sequences(control("s", fp32_false_true=[0, 1])), STEP, "has dims [1] for control input 's', the model [4]"),
    (sequences(START, states=[state("start", "t", 1)]), STEP, "names 'start' twice"),
    (sequences(START, states=[state("s", "t", 4)], input=[entry("s", 4)]), STEP, "the input 's', which sequence_b"),
    (sequences(START, states=[state("z", "t", 4)]), STEP, "names the state input 'z', the model has"),
    (sequences(START, states=[state("s", "z", 4)]), STEP, "names the state output 'z', the model has ['y', 't']"),
    (sequences(START, states=[state("s", "t", 5)]), STEP, "has dims [5] for state input 's', the model [4]"),
    (sequences(START, states=[state("s", "t")]), STEP, "has dims [] for state input 's', the model [4]"),
    (sequences(START, states=[state("s", "y", 4)]), STEP, "has dims [4] for state output 'y', the model [1]"),
    (sequences(START, states=[state("s", "t", 4), state("x", "t", 4)]), STEP, "names 't' twice"),
    (sequences(START, states=[state("s", "t", 4, use_growable_memory=True)]), STEP, "sets use_growable_memory"),
    (sequences(START, states=[state("s", "t", 4, **BEGINS_LONG)]), STEP, "with dims [3] for state 's', expected [4]"),
    (config(sequence_batching={"iterative_sequence": True}), STEP, "asks for iterative sequences"),
    (config(input=[entry("z", 3)]), [x("N", 3), y("N", 3)], "names the input 'z', the model has ['x']"),
    (config(max_batch_size=8), [x(1, 3), y("N", 3)], "input 'x' tensor(float) [1,3] has no variable first dimension"),
    (config(max_batch_size=8), [x("N", 3), y(1, 3)], "output 'y' tensor(float) [1,3] has no variable first"),
    (config(input=[entry("x", 3)]), [x("N", 3), y("N", 3)], "has dims [3] for input 'x' tensor(float) [N,3]"),
    (config(max_batch_size=8, input=[entry("x", 4)]), [x("N", 3), y("N", 3)], "has dims [4] for input 'x'"),
    (
        config(input=[{**entry("x", -1, 3), "data_type": "TYPE_INT8"}]),
        [x("N", 3), y("N", 3)],
        "has TYPE_INT8 for input 'x', the model TYPE_FP32",
    ),
    (config(), [x("N", 3, type="tensor(bfloat16)"), y("N", 3)], "input 'x' has the type tensor(bfloat16)"),
    (config(), [x("N", 3), y(type="seq(map(int64,tensor(float)))")], "output 'y' has the type seq(map("),
    (config(model_transaction_policy={"decoupled": True}), [x("N", 3), y("N", 3)], "decoupled"),
    (config(input=[entry("x", 3, optional=True)]), [x("N", 3), y("N", 3)], "sets optional for input 'x'"),
    (config(input=[entry("x", 3, allow_ragged_batch=True)]), [x("N", 3), y("N", 3)], "allow_ragged_batch"),
]


@pytest.mark.parametrize(("given", "tensors", "message"), REFUSED, ids=[r[2][:30] for r in REFUSED])
def test_refused(complete: Complete, given: dict[str, Any], tensors: list[Tensor], message: str) -> None:
    with pytest.raises(Error) as caught:
        complete(given, tensors)
    assert caught.value.code == "UserError"
    assert message in caught.value.message


def test_the_remark_says_why_there_is_no_batching(complete: Complete) -> None:
    assert batching_obstacle([x("N", 3), y("M", 3)]) == "the first dimensions have different names: M, N"
    assert "unnamed" in complete(config(), [x(None, 3), y("N", 3)]).remark
