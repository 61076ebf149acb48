"""What ``sequence_batching`` asks of a model, and the state that a sequence keeps between requests.

Decides which tensors Triton's sequence batcher provides (controls) and which it keeps (states),
whether the model has them in that form, and how long a state is kept here. Must not know Triton's
objects or ONNX Runtime. Triton gives its Python interface the first value of a state and takes none
back, so this module keeps them, by the sequence's id. Source: Triton's document "Stateful Models".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from amphitrite.dataplane.triton.backends.onnxruntime.tensors import Array, Dimension, Tensor, format_shape, triton_type
from amphitrite.schemas.errors import Error

#: How long a sequence may be idle where config.pbtxt does not say: Triton's default.
_IDLE_S = 1.0
#: The longest that a request of a living sequence waits here: the largest timeout of a deployment.
_WAIT_S = 180.0

_VALUES = {"int32_false_true": "TYPE_INT32", "fp32_false_true": "TYPE_FP32", "bool_false_true": "TYPE_BOOL"}


@dataclass(frozen=True, slots=True)
class State:
    """One ``state`` of a configuration: the value of ``output`` is the next request's ``input``.

    ``zero``: a sequence begins with zeros, because config.pbtxt has no ``initial_state``.
    """

    input: str
    output: str
    zero: bool


@dataclass(frozen=True, slots=True)
class Sequences:
    """``provided``: the inputs that no client sends."""

    provided: frozenset[str] = frozenset()
    states: tuple[State, ...] = ()


def declared(config: Mapping[str, Any]) -> Sequences:
    """The names in ``sequence_batching``. Raises Error("UserError") for what is not honoured, and
    for a name that stands twice."""
    batcher = config.get("sequence_batching") or {}
    if batcher.get("iterative_sequence"):
        raise _error("config.pbtxt asks for iterative sequences, which this backend has not")
    states = []
    for entry in batcher.get("state") or ():
        for name in ("use_same_buffer_for_input_output", "use_growable_memory"):
            if entry.get(name):
                raise _error(f"config.pbtxt sets {name} for state '{entry['input_name']}', which this backend has not")
        states.append(State(entry["input_name"], entry["output_name"], not entry.get("initial_state")))
    inputs = [*_controls(batcher), *(state.input for state in states)]
    for names in (inputs, [state.output for state in states]):
        for name in names:
            if names.count(name) > 1:
                raise _error(f"config.pbtxt names '{name}' twice in sequence_batching")
    for entry in config.get("input") or ():
        if entry["name"] in inputs:
            raise _error(f"config.pbtxt names the input '{entry['name']}', which sequence_batching provides")
    return Sequences(frozenset(inputs), tuple(states))


def check(config: Mapping[str, Any], tensors: Sequence[Tensor], *, batching: bool) -> None:
    """Raises Error("UserError") where the model does not have a control or a state as the
    configuration says."""
    batcher = config.get("sequence_batching") or {}
    for name, data_type in _controls(batcher).items():
        _check_tensor("control input", _named(tensors, "input", name, "control input"), data_type, [1], batching, True)
    for entry in batcher.get("state") or ():
        dims = [int(d) for d in entry.get("dims") or ()]
        for kind in ("input", "output"):
            tensor = _named(tensors, kind, entry[f"{kind}_name"], f"state {kind}")
            _check_tensor(f"state {kind}", tensor, entry.get("data_type", "TYPE_INVALID"), dims, batching, False)
        for initial in entry.get("initial_state") or ():
            begins = [int(d) for d in initial.get("dims") or ()]
            if begins != [1 if d == -1 else d for d in dims]:
                raise _error(
                    f"config.pbtxt has initial_state with dims {format_shape(tuple(begins))} for state "
                    f"'{entry['input_name']}', expected {format_shape(tuple(1 if d == -1 else d for d in dims))}",
                    "Triton begins each variable dimension of a state with 1",
                )


def check_ids(config: Mapping[str, Any]) -> None:
    """Raises Error("UserError") for ids as strings in a control input. Triton 2.51 hands these over
    with bytes behind the string, and then its Python interface refuses each request."""
    for name, data_type in _controls(config.get("sequence_batching") or {}).items():
        if data_type == "TYPE_STRING":
            raise _error(
                f"config.pbtxt has TYPE_STRING for control input '{name}', which needs the native backend",
                "install a C++ compiler, or remove the control",
            )


def number_id(config: Mapping[str, Any]) -> str | None:
    """The control input of ids as numbers; None: there is none. Triton 2.51 would give it the
    length and the first bytes of an id that is a string."""
    for entry in (config.get("sequence_batching") or {}).get("control_input") or ():
        if any(control.get("kind") == "CONTROL_SEQUENCE_CORRID" for control in entry.get("control") or ()):
            return str(entry["name"])
    return None


def _controls(batcher: Mapping[str, Any]) -> dict[str, str]:
    """Control input -> its type."""
    found = {}
    for entry in batcher.get("control_input") or ():
        for control in entry.get("control") or ():
            given = [data_type for field, data_type in _VALUES.items() if control.get(field)]
            found[entry["name"]] = given[0] if given else control.get("data_type", "TYPE_INVALID")
    return found


def _named(tensors: Sequence[Tensor], kind: str, name: str, role: str) -> Tensor:
    known = [t.name for t in tensors if t.kind == kind]
    if name not in known:
        raise _error(f"config.pbtxt names the {role} '{name}', the model has {known}")
    return next(t for t in tensors if t.kind == kind and t.name == name)


def _check_tensor(role: str, tensor: Tensor, data_type: str, dims: list[int], batching: bool, exact: bool) -> None:
    """``exact``: a variable dimension of the model does not fit."""
    if triton_type(tensor) != data_type:
        raise _error(f"config.pbtxt has {data_type} for {role} '{tensor.name}', the model {triton_type(tensor)}")
    shape: tuple[Dimension, ...] = tensor.shape[1:] if batching else tensor.shape
    fits = bool(dims) and len(shape) == len(dims)
    fits = fits and all(d == n or not (exact or isinstance(d, int)) for d, n in zip(shape, dims, strict=True))
    if not fits:
        raise _error(f"config.pbtxt has dims {format_shape(tuple(dims))} for {role} '{tensor.name}', "
                     f"the model {format_shape(shape)}")  # fmt: skip


@dataclass(slots=True)
class _Kept:
    values: dict[str, Array]
    used_at: float


@dataclass(slots=True)
class SequenceStates:
    """The states of the sequences of one copy of a model. Times are in seconds of any clock that
    only grows.

    ``slots``: how many sequences Triton gives one copy at a time. ``idle_s``: how long it waits for
    a sequence's next request. A sequence that has not ended is forgotten when it cannot come back.
    """

    states: Sequence[State]
    slots: int
    idle_s: float
    _kept: dict[int | str, _Kept] = field(default_factory=dict)

    def begin(self, sequence: int | str, given: Mapping[str, Array], *, start: bool, now: float) -> dict[str, Array]:
        """The state inputs of a request. ``given``: what Triton provides, with which a sequence
        begins. Without a sequence, as in a warm-up, it is all there is.

        Raises Error("ScoringFailed") when nothing is kept of a sequence that has begun.
        """
        if not self.states:
            return {}
        first = {state.input: _first(state, given[state.input]) for state in self.states}
        if not sequence:
            return first
        if start:
            self._kept[sequence] = _Kept(first, now)
            self._forget(now)
        elif sequence not in self._kept:
            raise Error("ScoringFailed", f"the state of sequence {sequence} is lost; start the sequence again")
        return dict(self._kept[sequence].values)

    def end(self, sequence: int | str, outputs: Mapping[str, Array] | Error, *, last: bool, now: float) -> None:
        """Keeps the states among ``outputs`` for the next request; ``last``: there is none. After a
        failure the states are as before it."""
        if last:
            self._kept.pop(sequence, None)
        elif sequence in self._kept and not isinstance(outputs, Error):
            # Copies, because an output is a part of the whole batch.
            self._kept[sequence] = _Kept({state.input: outputs[state.output].copy() for state in self.states}, now)

    def _forget(self, now: float) -> None:
        if len(self._kept) <= self.slots:
            return
        limit = now - self.idle_s - _WAIT_S
        for sequence in [sequence for sequence, kept in self._kept.items() if kept.used_at < limit]:
            del self._kept[sequence]


def _first(state: State, given: Array) -> Array:
    """Triton's strings are empty already, but its numbers are whatever was in the memory."""
    return np.zeros_like(given) if state.zero and given.dtype != np.object_ else given


def states_of(config: Mapping[str, Any], max_batch_size: int) -> SequenceStates:
    """An empty store for the model of ``config``."""
    batcher = config.get("sequence_batching") or {}
    idle_s = int(batcher.get("max_sequence_idle_microseconds") or 0) / 1e6
    candidates = int((batcher.get("oldest") or {}).get("max_candidate_sequences") or 0)
    return SequenceStates(declared(config).states, candidates or max(1, max_batch_size), idle_s or _IDLE_S)


def _error(message: str, hint: str | None = None) -> Error:
    return Error("UserError", f"{message} ({hint})" if hint else message, hint=hint)
