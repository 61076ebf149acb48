"""What is read of ONNX files that the package ``onnx`` made, and of what is none."""

from __future__ import annotations

import io

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from amphitrite.schemas.repository.onnx import graph_file
from amphitrite.schemas.repository.onnx.graph_file import Graph, Tensor, Weights
from amphitrite.schemas.repository.onnx.protobuf_wire import Damaged

from ...tiny_onnx import tiny


def read(content: bytes) -> Graph:
    return graph_file.read(io.BytesIO(content), len(content))


def made(inputs: list[onnx.ValueInfoProto], outputs: list[onnx.ValueInfoProto], **more: object) -> onnx.ModelProto:
    node = helper.make_node("Add", ["x", "w"], ["y"], name="add")
    graph = helper.make_graph([node], "g", inputs, outputs, **more)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def info(name: str, kind: int, shape: list[int | str | None] | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


WEIGHT = numpy_helper.from_array(np.zeros(300_000, np.float32), "w")
Y = info("y", TensorProto.FLOAT, None)


def test_inputs_outputs_and_what_lies_between() -> None:
    inputs = [info("x", TensorProto.FLOAT, ["N", 3, None]), info("w", TensorProto.FLOAT, [300_000])]
    graph = read(made(inputs, [Y], initializer=[WEIGHT]).SerializeToString())
    assert graph.inputs == (Tensor("input", "x", "TYPE_FP32", "TYPE_FP32", ("N", 3, None)),)
    assert graph.outputs == (Tensor("output", "y", "TYPE_FP32", "TYPE_FP32", None),)
    assert (graph.ir_version, graph.opsets, graph.operators) == (8, {"": 17}, {("", "Add"): 1})
    assert (graph.undefined, graph.external) == ([], [])


@pytest.mark.parametrize(("kind", "word"), sorted(graph_file.TYPES.items()))
def test_types_are_called_as_in_triton(kind: int, word: str) -> None:
    graph = read(made([info("x", kind, [2])], [Y]).SerializeToString())
    assert graph.inputs[0].type == word


def test_types_that_triton_has_not() -> None:
    sequence = helper.make_value_info("y", helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, None)))
    graph = read(made([info("x", TensorProto.BFLOAT16, [])], [sequence]).SerializeToString())
    assert [(t.type, t.type_word) for t in graph.tensors] == [(None, "bfloat16"), (None, "a sequence")]
    assert graph.inputs[0].shape == ()


def test_what_nobody_makes() -> None:
    assert read(made([info("x", TensorProto.FLOAT, [2])], [Y]).SerializeToString()).undefined == ["w"]


def test_weights_in_another_file() -> None:
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "w.bin"), ("offset", "8"), ("length", "16")):
        weight.external_data.add(key=key, value=value)
    content = made([info("x", TensorProto.FLOAT, [4])], [Y], initializer=[weight]).SerializeToString()
    assert read(content).external == [Weights("w", "w.bin", 8, 16)]


@pytest.mark.parametrize("content", [b"this is not a model", b"\x00", b"\xff" * 30, tiny("x")[:-3]])
def test_what_is_no_onnx_file(content: bytes) -> None:
    with pytest.raises(Damaged):
        read(content)


def test_an_empty_file_has_no_graph() -> None:
    assert not read(b"").has_graph


class Counting(io.BytesIO):
    got = 0

    def read(self, size: int | None = -1) -> bytes:
        found = super().read(size)
        self.got += len(found)
        return found


def test_weights_are_passed_over() -> None:
    content = made([info("x", TensorProto.FLOAT, ["N"])], [Y], initializer=[WEIGHT]).SerializeToString()
    stream = Counting(content)
    graph_file.read(stream, len(content))
    assert len(content) > 1_000_000
    assert stream.got < 2_000
