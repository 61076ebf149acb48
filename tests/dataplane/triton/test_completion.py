"""Rows: what an ONNX file declares, what config.pbtxt says, and the configuration that comes out of
both backends."""

from __future__ import annotations

from typing import Any

import pytest

from amphitrite.dataplane.triton.backends.onnxruntime.completion import batching_obstacle
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


REFUSED = [
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
    (config(sequence_batching={"direct": {}}), [x("N", 3), y("N", 3)], "sequence batching"),
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
