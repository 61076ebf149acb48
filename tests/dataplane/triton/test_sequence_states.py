"""The states that the Python form of the backend keeps, without a server."""

from __future__ import annotations

import numpy as np
import pytest

from amphitrite.dataplane.triton.backends.onnxruntime import sequences
from amphitrite.dataplane.triton.backends.onnxruntime.sequences import SequenceStates, State
from amphitrite.schemas.errors import Error

GIVEN = {"s": np.array([[5.0]])}


def states(*, zero: bool = False, slots: int = 2) -> SequenceStates:
    return SequenceStates([State("s", "t", zero)], slots, idle_s=1.0)


def test_a_state_is_what_the_last_request_has_left() -> None:
    kept = states()
    assert kept.begin(7, GIVEN, start=True, now=0)["s"].tolist() == [[5]]
    kept.end(7, {"t": np.array([[6.0]])}, last=False, now=0)
    assert kept.begin(7, GIVEN, start=False, now=1)["s"].tolist() == [[6]]
    kept.end(7, Error("ScoringFailed", "it failed"), last=False, now=1)
    assert kept.begin(7, GIVEN, start=False, now=2)["s"].tolist() == [[6]], "a failure changes nothing"
    assert kept.begin(7, GIVEN, start=True, now=3)["s"].tolist() == [[5]], "it starts again"


def test_without_an_initial_state_a_sequence_begins_with_zeros() -> None:
    assert states(zero=True).begin(7, GIVEN, start=True, now=0)["s"].tolist() == [[0]]


def test_a_warm_up_belongs_to_no_sequence() -> None:
    kept = states()
    assert kept.begin(0, GIVEN, start=False, now=0)["s"].tolist() == [[5]]
    kept.end(0, {"t": np.array([[6.0]])}, last=False, now=0)
    assert kept.begin(0, GIVEN, start=False, now=0)["s"].tolist() == [[5]]


def test_nothing_is_kept_of_a_sequence_that_has_ended() -> None:
    kept = states()
    kept.begin("a", GIVEN, start=True, now=0)
    kept.end("a", {"t": np.array([[6.0]])}, last=True, now=0)
    with pytest.raises(Error, match="the state of sequence a is lost"):
        kept.begin("a", GIVEN, start=False, now=0)


def test_sequences_that_never_end_are_forgotten() -> None:
    kept = states(slots=2)
    for sequence in range(1, 1000):
        kept.begin(sequence, GIVEN, start=True, now=float(sequence))
    assert len(kept._kept) < 200
    assert kept.begin(999, GIVEN, start=False, now=999)["s"].tolist() == [[5]]


def test_ids_as_strings_need_the_native_backend() -> None:
    control = {"kind": "CONTROL_SEQUENCE_CORRID", "data_type": "TYPE_STRING"}
    with pytest.raises(Error, match="TYPE_STRING for control input 'ID', which needs the native backend"):
        sequences.check_ids({"sequence_batching": {"control_input": [{"name": "ID", "control": [control]}]}})
