"""Tiny model repositories: one ONNX model that adds a number, all kinds of models, or one that
cannot be loaded."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ..tiny_onnx import tiny


def adding(root: Path, number: float, name: str = "tiny", columns: int = 4) -> Path:
    """A model repository whose only model gives ``Y = X + number`` (FP32, [N, columns])."""
    graph = helper.make_graph(
        [helper.make_node("Add", ["X", "B"], ["Y"])],
        name,
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, ["N", columns])],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, ["N", columns])],
        [numpy_helper.from_array(np.array([number], np.float32), "B")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    directory = root / name / "1"
    directory.mkdir(parents=True)
    onnx.save(model, str(directory / "model.onnx"))
    return root


def model_types(root: Path) -> Path:
    """The repository of ``model_types/`` with its two ONNX models: ``plain`` adds 1, ``classify``
    returns its input."""
    source = Path(__file__).parent / "model_types"
    shutil.copytree(source, root, ignore=shutil.ignore_patterns("versions_model.py", "__pycache__"))
    for policy in ("latest", "all", "specific"):
        for version in ("1", "2"):
            (root / f"versions_{policy}" / version).mkdir()
            shutil.copy(source / "versions_model.py", root / f"versions_{policy}" / version / "model.py")
    (root / "waits_briefly" / "1").mkdir()
    shutil.copy(source / "waits" / "1" / "model.py", root / "waits_briefly" / "1" / "model.py")
    adding(root, 1, "plain")
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 3]) for name in ("colors", "scores")]
    node = helper.make_node("Identity", ["colors"], ["scores"])
    graph = helper.make_graph([node], "classify", tensors[:1], tensors[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (root / "classify" / "1").mkdir()
    onnx.save(model, str(root / "classify" / "1" / "model.onnx"))
    return root


def pooling(root: Path, name: str = "model_1") -> Path:
    """The shape of Azure ML's public Triton example: ``data_0`` (a picture) to ``fc6_1``, the mean
    of each channel."""
    graph = helper.make_graph(
        [helper.make_node("GlobalAveragePool", ["data_0"], ["fc6_1"])],
        name,
        [helper.make_tensor_value_info("data_0", TensorProto.FLOAT, [1, 3, 224, 224])],
        [helper.make_tensor_value_info("fc6_1", TensorProto.FLOAT, [1, 3, 1, 1])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    directory = root / name / "1"
    directory.mkdir(parents=True)
    onnx.save(model, str(directory / "model.onnx"))
    return root


def waiting(root: Path, seconds: float, name: str = "waits") -> Path:
    """A model repository whose only model gives ``y = x`` (FP32, [N, 4]) after ``seconds`` in
    Triton's batcher, which takes no processor."""
    (root / name / "1").mkdir(parents=True)
    (root / name / "1" / "model.onnx").write_bytes(tiny(name))
    (root / name / "config.pbtxt").write_text(
        f'''name: "{name}" backend: "onnxruntime" max_batch_size: 64
        input [{{ name: "x", data_type: TYPE_FP32, dims: [4] }}]
        output [{{ name: "y", data_type: TYPE_FP32, dims: [4] }}]
        dynamic_batching {{ preferred_batch_size: [64], max_queue_delay_microseconds: {round(seconds * 1e6)} }}
        '''
    )
    return root


def broken(root: Path) -> Path:
    """A repository that looks well and that ONNX Runtime cannot load: the type of an output is not
    what makes it."""
    graph = helper.make_graph(
        [helper.make_node("Identity", ["X"], ["Y"])],
        "tiny",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, ["N", 4])],
        [helper.make_tensor_value_info("Y", TensorProto.INT64, ["N", 4])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    directory = root / "tiny" / "1"
    directory.mkdir(parents=True)
    onnx.save(model, str(directory / "model.onnx"))
    return root


REQUEST = json.dumps({"inputs": [{"name": "X", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}]}).encode()
INFER = "/endpoints/cats/v2/models/tiny/infer"
