"""Models of sequences: in ONNX, each with another kind of control and state, and one in Python that
they are compared with.

Decides their arithmetic: ``TOTAL`` is the sum of the inputs ``x`` of a sequence so far, and each
control comes back as an output. Must not know clients or servers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, helper

from .onnx_models import ONE, Value, write

_I64, _TEXT = TensorProto.INT64, TensorProto.STRING
_ONNX = {"int32": TensorProto.INT32, "fp32": TensorProto.FLOAT, "bool": TensorProto.BOOL,
         "UINT64": TensorProto.UINT64, "INT64": _I64, "UINT32": TensorProto.UINT32, "INT32": TensorProto.INT32,
         "STRING": _TEXT}  # fmt: skip
_VALUES = {"int32": "[ 0, 1 ]", "fp32": "[ 0, 1 ]", "bool": "[ false, true ]"}
CONTROLS = ("START", "END", "READY")

_DIRECT, _OLDEST = "direct { }", "oldest { max_candidate_sequences: 4 max_queue_delay_microseconds: 1000 }"
#: Longer than any pause of a test.
_IDLE = "max_sequence_idle_microseconds: 50000000"


@dataclass(frozen=True)
class Model:
    """``ids``: the type of its control of ids. ``controls``: which others it has, of the type
    ``kind``. ``begins``: the first value of its sum, and how config.pbtxt says so."""

    name: str
    strategy: str
    batch: int
    ids: str
    kind: str = "int32"
    controls: tuple[str, ...] = CONTROLS
    begins: tuple[int, str] = (0, "zero_data: true")


MODELS = (
    Model("seq_direct", _DIRECT, 4, "UINT64"),
    Model("seq_oldest", _OLDEST, 4, "INT64", "fp32", begins=(7, 'data_file: "seven"')),
    Model("seq_single", _DIRECT, 0, "STRING", "bool", begins=(0, "")),
    Model("seq_history", _OLDEST, 4, "UINT32", controls=("START",), begins=(0, "")),
    Model("seq_words", _DIRECT, 4, "INT32", controls=()),
)
TWIN = "seq_python"

_TWIN = """
import numpy as np
import triton_python_backend_utils as triton


class TritonPythonModel:
    def initialize(self, args):
        self.totals = {}

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        given = {tensor.name(): int(tensor.as_numpy()[0, 0]) for tensor in request.inputs()}
        if not given["READY"]:
            return triton.InferenceResponse(output_tensors=[])
        sequence = request.correlation_id()
        total = given["x"] + (0 if given["START"] else self.totals[sequence])
        self.totals[sequence] = total
        if given["END"]:
            del self.totals[sequence]
        made = [("TOTAL", total, np.int64)]
        made += [("IS_" + name, given[name], np.int32) for name in ("START", "END", "READY")]
        outputs = [triton.Tensor(name, np.array([[value]], kind)) for name, value, kind in made]
        return triton.InferenceResponse(output_tensors=outputs)
"""


def write_sequences(root: Path, *, texts: bool) -> None:
    """``texts``: whether ids may be strings; else that model has numbers."""
    for model in MODELS:
        _write(root, model if texts or model.ids != "STRING" else replace(model, ids="INT64"))
    (root / TWIN / "1").mkdir(parents=True)
    (root / TWIN / "1" / "model.py").write_text(_TWIN)
    shown = [f'output {{ name: "IS_{name}" data_type: TYPE_INT32 dims: [ 1 ] }}' for name in CONTROLS]
    (root / TWIN / "config.pbtxt").write_text(
        f'backend: "python"\nmax_batch_size: 4\n{ONE}'
        'input { name: "x" data_type: TYPE_INT64 dims: [ 1 ] }\n'
        'output { name: "TOTAL" data_type: TYPE_INT64 dims: [ 1 ] }\n'
        + "\n".join([*shown, f"sequence_batching {{ {_IDLE} {_DIRECT} {_control_inputs('int32', CONTROLS)} }}\n"])
    )


def _write(root: Path, model: Model) -> None:
    """``TOTAL`` is a state less its first value, plus ``x``."""
    node, batch = helper.make_node, ["N"] if model.batch else []
    one: list[str | int | None] = [*batch, 1]
    first, how = model.begins
    nodes = [node("Add", ["total", "x"], ["total_next"]), node("Sub", ["total_next", "first"], ["TOTAL"])]
    inputs: list[Value] = [("x", _I64, one), ("total", _I64, one), ("ID", _ONNX[model.ids], one)]
    outputs: list[Value] = [("TOTAL", _I64, one), ("total_next", _I64, one), ("IS_ID", _ONNX[model.ids], one)]
    nodes.append(node("Identity", ["ID"], ["IS_ID"]))
    for name in model.controls:
        inputs.append((name, _ONNX[model.kind], one))
        outputs.append((f"IS_{name}", _ONNX[model.kind], one))
        nodes.append(node("Identity", [name], [f"IS_{name}"]))
    states = [_state("total", "total_next", "INT64", 1, how)]
    if model.name == "seq_history":
        # A second state, of variable size. The names of the two are in another order on each side.
        longer: list[str | int | None] = ["N", "T1"]
        nodes[1] = node("ReduceSum", ["a_history_next", "axes"], ["TOTAL"])
        nodes.insert(0, node("Concat", ["z_history", "x"], ["a_history_next"], axis=1))
        inputs.append(("z_history", _I64, ["N", "T"]))
        outputs.append(("a_history_next", _I64, longer))
        states.append(_state("z_history", "a_history_next", "INT64", -1, ""))
        outputs.append(("SUM", _I64, one))
        nodes.append(node("Identity", ["total_next"], ["SUM"]))
    if model.name == "seq_words":
        inputs += [("word", _TEXT, one), ("previous", _TEXT, one)]
        outputs += [("PREVIOUS", _TEXT, one), ("previous_next", _TEXT, one)]
        nodes += [node("Identity", ["previous"], ["PREVIOUS"]), node("Identity", ["word"], ["previous_next"])]
        states.append(_state("previous", "previous_next", "STRING", 1, ""))
    controls = _control_inputs(model.kind, model.controls)
    controls += (
        f' control_input {{ name: "ID" control {{ kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_{model.ids} }} }}'
    )
    config = f"max_batch_size: {model.batch}\n{ONE}sequence_batching {{ {_IDLE} {model.strategy}\n{controls}\n"
    constants: dict[str, npt.NDArray[Any]] = {"first": np.array([first], np.int64), "axes": np.array([1], np.int64)}
    write(root, model.name, nodes, inputs, outputs, "\n".join([config, *states, "}\n"]), constants)
    if "data_file" in how:
        (root / model.name / "initial_state").mkdir()
        (root / model.name / "initial_state" / "seven").write_bytes(np.array([first], np.int64).tobytes())


def _state(taken: str, given: str, data_type: str, dim: int, begins: str) -> str:
    kind = f"data_type: TYPE_{data_type} dims: [ {dim} ]"
    initial = f'initial_state {{ name: "first" {kind} {begins} }}' if begins else ""
    return f'state {{ input_name: "{taken}" output_name: "{given}" {kind} {initial} }}'


def _control_inputs(kind: str, names: tuple[str, ...]) -> str:
    values = f"{kind}_false_true: {_VALUES[kind]}"
    return " ".join(f'control_input {{ name: "{n}" control {{ kind: CONTROL_SEQUENCE_{n} {values} }} }}' for n in names)
