"""The models that Triton's example clients ask for, as their contract says and with nothing of
theirs.

Decides what each computes: ``repository/`` and ``sequences/`` have their configurations and the
models in Python, this module the graphs. Must not know how they are served.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import onnx
from onnx import TensorProto, helper

HERE = Path(__file__).parent
INT32, INT8, TEXT, FLOAT, UINT64 = (
    TensorProto.INT32, TensorProto.INT8, TensorProto.STRING, TensorProto.FLOAT, TensorProto.UINT64,
)  # fmt: skip
Dims = Sequence[str | int]


def repository(root: Path) -> Path:
    """Those without state."""
    shutil.copytree(HERE / "repository", root, ignore=shutil.ignore_patterns("__pycache__"))
    decoder = HERE.parent / "system" / "model_types" / "decode" / "1"
    shutil.copytree(decoder, root / "picture_decoder" / "1", ignore=shutil.ignore_patterns("__pycache__"))
    for name, kind in (("simple", INT32), ("simple_int8", INT8), ("simple_string", TEXT)):
        _save(root, name, _sums(kind))
    for name, kind in (("simple_identity", TEXT), ("custom_identity_int32", INT32), ("waits_for_others", INT32)):
        _save(root, name, _identity(kind, "INPUT0", "OUTPUT0", ["N", "M"]))
    _save(root, "color_classes", _identity(FLOAT, "colors", "class", ["N", 3]))
    _save(root, "pictures", _means("data_0", "fc6_1", ["N", 224, 224, 3]))
    _save(root, "densenet_onnx", _means("input", "InceptionV3/Predictions/Softmax", [1, 299, 299, 3]))
    return root


def sequences(root: Path) -> Path:
    """Those with state."""
    shutil.copytree(HERE / "sequences", root, ignore=shutil.ignore_patterns("__pycache__"))
    _save(root, "simple_sequence", _started())
    _save(root, "simple_dyna_sequence", _ended())
    return root


def _save(root: Path, name: str, graph: onnx.GraphProto) -> None:
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    directory = root / name / "1"
    directory.mkdir()
    onnx.save(model, str(directory / "model.onnx"))


def _values(kind: int, dims: Dims, *names: str) -> list[onnx.ValueInfoProto]:
    return [helper.make_tensor_value_info(name, kind, dims) for name in names]


def _sums(kind: int) -> onnx.GraphProto:
    """The sum and the difference. ONNX Runtime adds no INT8 and no texts, so all goes through
    INT32."""
    given, made = ("INPUT0", "INPUT1"), ("OUTPUT0", "OUTPUT1")
    nodes = [helper.make_node("Cast", [name], [f"{name}_32"], to=INT32) for name in given]
    for operator, name in zip(("Add", "Sub"), made, strict=True):
        nodes.append(helper.make_node(operator, [f"{one}_32" for one in given], [f"{name}_32"]))
        nodes.append(helper.make_node("Cast", [f"{name}_32"], [name], to=kind))
    return helper.make_graph(nodes, "sums", _values(kind, ["N", 16], *given), _values(kind, ["N", 16], *made))


def _identity(kind: int, given: str, made: str, dims: Dims) -> onnx.GraphProto:
    node = helper.make_node("Identity", [given], [made])
    return helper.make_graph([node], "identity", _values(kind, dims, given), _values(kind, dims, made))


def _means(given: str, made: str, dims: Dims) -> onnx.GraphProto:
    """The mean of each color."""
    node = helper.make_node("ReduceMean", [given], [made], axes=[1, 2], keepdims=0)
    return helper.make_graph([node], "means", _values(FLOAT, dims, given), _values(FLOAT, [dims[0], 3], made))


def _started() -> onnx.GraphProto:
    """The number, one more at a start."""
    nodes = [
        helper.make_node("Add", ["INPUT", "START"], ["started"]),
        helper.make_node("Mul", ["started", "READY"], ["OUTPUT"]),
    ]
    given = _values(INT32, ["N", 1], "INPUT", "START", "READY")
    return helper.make_graph(nodes, "started", given, _values(INT32, ["N", 1], "OUTPUT"))


def _ended() -> onnx.GraphProto:
    """The number, one more at a start; at an end the sequence's number is added."""
    nodes = [
        helper.make_node("Add", ["INPUT", "START"], ["started"]),
        helper.make_node("Cast", ["CORRID"], ["sequence"], to=INT32),
        helper.make_node("Mul", ["sequence", "END"], ["at_end"]),
        helper.make_node("Add", ["started", "at_end"], ["ended"]),
        helper.make_node("Mul", ["ended", "READY"], ["OUTPUT"]),
    ]
    given = [*_values(INT32, ["N", 1], "INPUT", "START", "END", "READY"), *_values(UINT64, ["N", 1], "CORRID")]
    return helper.make_graph(nodes, "ended", given, _values(INT32, ["N", 1], "OUTPUT"))
