"""ONNX files made from one line of text, the same bytes each time.

Decides what ``x FP32[N,4] -> y FP32[N,2]`` means: inputs, outputs, and nodes that ONNX Runtime
accepts between them. Must not know cases, Triton or the validator.

A type is Triton's word for it, or ``BF16``, or ``MAP`` (a sequence of maps, as classifiers of
scikit-learn have it). A dimension is a number, a symbol, or ``?`` for neither; without brackets the
rank stays open.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_TYPES = {
    "BOOL": TensorProto.BOOL, "UINT8": TensorProto.UINT8, "UINT16": TensorProto.UINT16, "UINT32": TensorProto.UINT32,
    "UINT64": TensorProto.UINT64, "INT8": TensorProto.INT8, "INT16": TensorProto.INT16, "INT32": TensorProto.INT32,
    "INT64": TensorProto.INT64, "FP16": TensorProto.FLOAT16, "FP32": TensorProto.FLOAT, "FP64": TensorProto.DOUBLE,
    "BF16": TensorProto.BFLOAT16, "STRING": TensorProto.STRING, "MAP": TensorProto.FLOAT,
}  # fmt: skip
_TENSOR = re.compile(r"(\S+) ([A-Z0-9]+)(?:\[([^\]]*)\])?")


@dataclass(frozen=True)
class _Value:
    name: str
    kind: str
    dims: tuple[int | str | None, ...] | None

    @property
    def declared(self) -> onnx.ValueInfoProto:
        if self.kind == "MAP":
            key_to_value = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(1, []))
            return helper.make_value_info(self.name, helper.make_sequence_type_proto(key_to_value))
        return helper.make_tensor_value_info(self.name, _TYPES[self.kind], self.dims)


def graph(text: str, *, opset: int = 17, op: str | None = None, outside: str | None = None) -> bytes:
    """The file. ``op``: an operator, known to ONNX or not, that makes each output. ``outside``: the
    file in which the data of a weight are said to lie, which is added to the first output.
    """
    inputs, outputs = (_values(side) for side in text.split("->"))
    weights = [] if inputs else [numpy_helper.from_array(np.zeros(1, np.float32), "fixed")]
    nodes = []
    for index, output in enumerate(outputs):
        source = inputs[min(index, len(inputs) - 1)] if inputs else _Value("fixed", "FP32", (1,))
        steps, shape = _steps(source, output, op)
        if shape is not None:
            weights.append(numpy_helper.from_array(np.array(shape, np.int64), f"shape{index}"))
        at = source.name
        for number, (step, attributes) in enumerate(steps, start=1):
            to = output.name if number == len(steps) else f"step{index}_{number}"
            more = [f"shape{index}"] if step == "Reshape" else []
            domain = "ai.onnx.ml" if step == "ZipMap" else ""
            nodes.append(helper.make_node(step, [at, *more], [to], domain=domain, **attributes))
            at = to
    if outside:
        weights.append(_outside(outside))
        nodes[0] = helper.make_node("Add", [inputs[0].name, "outside"], [outputs[0].name])
    made = helper.make_graph(nodes, "made", [v.declared for v in inputs], [v.declared for v in outputs], weights)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(made, opset_imports=opsets, ir_version=8).SerializeToString(deterministic=True)


def _values(text: str) -> list[_Value]:
    found = []
    for name, kind, dims in _TENSOR.findall(text):
        given = f"{name} {kind}[" in text
        numbers = [part.strip() for part in dims.split(",") if part.strip()]
        read = tuple(int(d) if d.isdigit() else None if d == "?" else d for d in numbers)
        found.append(_Value(name, kind, read if given else None))
    return found


def _steps(
    source: _Value, output: _Value, op: str | None
) -> tuple[list[tuple[str, dict[str, object]]], list[int] | None]:
    """The operators from ``source`` to ``output``, and the shape for Reshape where it is one of
    them."""
    if op:
        return [(op, {})], None
    if output.kind == "MAP":
        return [("ZipMap", {"classlabels_int64s": [0, 1]})], None
    steps: list[tuple[str, dict[str, object]]] = []
    if source.kind != output.kind:
        steps.append(("Cast", {"to": _TYPES[output.kind]}))
    if output.dims is None or output.dims == source.dims:
        return steps or [("Identity", {})], None
    shape = [d if isinstance(d, int) else 0 for d in output.dims]
    variable = [i for i, d in enumerate(output.dims) if not isinstance(d, int)]
    if variable:
        shape[variable[-1]] = -1
    return [*steps, ("Reshape", {})], shape


def _outside(file: str) -> onnx.TensorProto:
    weight = TensorProto(name="outside", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value=file)
    return weight
