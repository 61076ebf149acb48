"""The two forms of the backend complete, or refuse, any configuration alike, in the same words."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from amphitrite.dataplane.triton.backends.onnxruntime.completion import Completion, complete
from amphitrite.dataplane.triton.backends.onnxruntime.tensors import Dimension, Tensor
from amphitrite.schemas.errors import Error

from .completions import Complete, native

NAMES = st.sampled_from("abcd")
TYPES = st.sampled_from(["tensor(float)", "tensor(int32)", "tensor(string)", "tensor(bfloat16)"])
DATA_TYPES = st.sampled_from(["TYPE_FP32", "TYPE_INT32", "TYPE_STRING", "TYPE_INVALID"])
DIMENSIONS: st.SearchStrategy[Dimension] = st.sampled_from([1, 4, "N", "T", None])
DIMS = st.lists(st.sampled_from([-1, 1, 4]), max_size=3)


def tensors(kind: str) -> st.SearchStrategy[list[Tensor]]:
    shapes = st.lists(DIMENSIONS, max_size=3).map(tuple)
    made = st.builds(Tensor, st.just(kind), NAMES, TYPES, st.one_of(shapes, st.just(("N", 1))))
    return st.lists(made, max_size=4, unique_by=lambda tensor: tensor.name)


ENTRY = st.fixed_dictionaries({"name": NAMES}, optional={"data_type": DATA_TYPES, "dims": DIMS})
#: Mostly none: a name that the model has not hides all that is checked later.
ENTRIES = st.one_of(st.just([]), st.just([]), st.lists(ENTRY, max_size=2, unique_by=lambda one: one["name"]))
VALUES = st.sampled_from(
    [{"int32_false_true": [0, 1]}, {"fp32_false_true": [0, 1]}, {"bool_false_true": [False, True]}]
)
IDS = st.fixed_dictionaries({"kind": st.just("CONTROL_SEQUENCE_CORRID"), "data_type": DATA_TYPES})
CONTROL = st.one_of(VALUES.map(lambda values: {"kind": "CONTROL_SEQUENCE_START", **values}), IDS)
CONTROL_INPUT = st.fixed_dictionaries({"name": NAMES, "control": CONTROL.map(lambda one: [one])})
INITIAL = st.fixed_dictionaries({"name": st.just("first"), "data_type": DATA_TYPES, "dims": DIMS})
STATE = st.fixed_dictionaries(
    {"input_name": NAMES, "output_name": NAMES, "data_type": DATA_TYPES, "dims": DIMS},
    optional={"initial_state": st.lists(INITIAL, max_size=1), "use_growable_memory": st.booleans()},
)
SEQUENCES = st.fixed_dictionaries(
    {"control_input": st.lists(CONTROL_INPUT, max_size=2, unique_by=lambda one: one["name"])},
    optional={"state": st.lists(STATE, max_size=2), "iterative_sequence": st.booleans()},
)
CONFIGURATIONS = st.fixed_dictionaries(
    {
        "max_batch_size": st.sampled_from([0, 0, 8]),
        "input": ENTRIES,
        "output": ENTRIES,
    },
    optional={"sequence_batching": SEQUENCES},
)
FITTING = (
    {
        "max_batch_size": 8,
        "input": [],
        "output": [],
        "sequence_batching": {
            "control_input": [
                {"name": "b", "control": [{"kind": "CONTROL_SEQUENCE_START", "int32_false_true": [0, 1]}]}
            ],
            "state": [{"input_name": "c", "output_name": "b", "data_type": "TYPE_FP32", "dims": [-1]}],
        },
    },
    [
        Tensor("input", "a", "tensor(float)", ("N", 4)),
        Tensor("input", "b", "tensor(int32)", ("N", 1)),
        Tensor("input", "c", "tensor(float)", ("N", "T")),
    ],
    [Tensor("output", "a", "tensor(float)", ("N", 4)), Tensor("output", "b", "tensor(float)", ("N", "T"))],
)


def outcome(form: Complete, config: dict[str, Any], declared: list[Tensor]) -> Completion | str:
    try:
        return form(config, declared)
    except Error as error:
        return error.message


@given(CONFIGURATIONS, tensors("input"), tensors("output"))
@example(*FITTING)
def test_both_forms_complete_alike(config: dict[str, Any], inputs: list[Tensor], outputs: list[Tensor]) -> None:
    assert outcome(native, config, inputs + outputs) == outcome(complete, config, inputs + outputs)


def test_the_example_fits() -> None:
    config, inputs, outputs = FITTING
    assert isinstance(outcome(complete, config, inputs + outputs), Completion)
