"""Tiny model repositories: one ONNX model that adds a number, or a file that is no model at all."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def adding(root: Path, number: float, name: str = "tiny") -> Path:
    """A model repository whose only model gives ``Y = X + number`` (FP32, [N, 4])."""
    graph = helper.make_graph(
        [helper.make_node("Add", ["X", "B"], ["Y"])],
        name,
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, ["N", 4])],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, ["N", 4])],
        [numpy_helper.from_array(np.array([number], np.float32), "B")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    directory = root / name / "1"
    directory.mkdir(parents=True)
    onnx.save(model, str(directory / "model.onnx"))
    return root


def broken(root: Path) -> Path:
    """A repository with a file that ONNX Runtime cannot read."""
    directory = root / "tiny" / "1"
    directory.mkdir(parents=True)
    (directory / "model.onnx").write_bytes(b"this is not a model")
    return root


REQUEST = json.dumps({"inputs": [{"name": "X", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}]}).encode()
