"""Requests joined and parted again: the answers are those that each would have had alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from amphitrite.dataplane.triton.backends.onnxruntime.batching import Request, run_all
from amphitrite.dataplane.triton.backends.onnxruntime.tensors import Array
from amphitrite.schemas.errors import Error


class Model:
    """``y`` = 2x, ``sum`` = the sum of each row. Fails on a negative number. Counts its runs."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self, wanted: Sequence[str], inputs: Mapping[str, Array]) -> list[Array]:
        self.runs += 1
        x = inputs["x"]
        if (x < 0).any():
            raise Error("ScoringFailed", "negative")
        outputs = {"y": 2 * x, "sum": x.sum(axis=tuple(range(1, x.ndim)))}
        return [outputs[name] for name in wanted]


def request(rows: int, width: int, first: float = 0, outputs: tuple[str, ...] = ("y",)) -> Request:
    return Request({"x": np.arange(rows * width, dtype=np.float32).reshape(rows, width) + first}, outputs)


requests = st.builds(
    request,
    st.integers(1, 4),
    st.integers(0, 3),
    st.integers(-3, 9),
    st.sampled_from([("y",), ("sum",), ("sum", "y")]),
)


@given(st.lists(requests, max_size=8))
def test_each_answer_is_that_of_the_request_alone(batch: list[Request]) -> None:
    for together, one in zip(run_all(Model(), batch, batching=True), batch, strict=True):
        (alone,) = run_all(Model(), [one], batching=False)
        if isinstance(alone, Error):
            assert together == alone
        else:
            assert not isinstance(together, Error)
            assert tuple(together) == one.outputs
            assert all(np.array_equal(together[name], alone[name]) for name in one.outputs)


def test_equal_shapes_run_once() -> None:
    model = Model()
    run_all(model, [request(1, 3), request(2, 3), request(1, 4), request(4, 3)], batching=True)
    assert model.runs == 2


def test_without_batching_nothing_is_joined() -> None:
    model = Model()
    run_all(model, [request(1, 3), request(1, 3)], batching=False)
    assert model.runs == 2


def test_an_output_that_loses_the_batch_is_an_error_that_names_it() -> None:
    def total(wanted: Sequence[str], inputs: Mapping[str, Array]) -> list[Array]:
        return [inputs["x"].sum(axis=0, keepdims=True)]

    answers = run_all(total, [request(1, 3), request(2, 3)], batching=True)
    assert isinstance(answers[0], Mapping)
    assert isinstance(answers[1], Error)
    assert "output 'y' has the shape [1, 3] for a batch of 2" in answers[1].message
