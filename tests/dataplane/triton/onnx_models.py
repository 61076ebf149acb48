"""A repository of small ONNX models, each for one thing that the backend must do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

#: Triton's name -> ONNX's element type.
TYPES = {
    "BOOL": TensorProto.BOOL, "UINT8": TensorProto.UINT8, "UINT16": TensorProto.UINT16, "UINT32": TensorProto.UINT32,
    "UINT64": TensorProto.UINT64, "INT8": TensorProto.INT8, "INT16": TensorProto.INT16, "INT32": TensorProto.INT32,
    "INT64": TensorProto.INT64, "FP16": TensorProto.FLOAT16, "FP32": TensorProto.FLOAT, "FP64": TensorProto.DOUBLE,
    "BYTES": TensorProto.STRING,
}  # fmt: skip

#: The model of the example: the one real network here.
SINGLE_MODEL = Path(__file__).parents[3] / "examples" / "single-model"
EXAMPLE = SINGLE_MODEL / "models" / "model_1"

ONE = "instance_group { count: 1 kind: KIND_CPU }\n"

Value = tuple[str, int, list[str | int | None]]


def write(
    root: Path, name: str, nodes: list[onnx.NodeProto], inputs: list[Value], outputs: list[Value],
    config: str = "", constants: dict[str, npt.NDArray[Any]] | None = None,
) -> None:  # fmt: skip
    initializers = [numpy_helper.from_array(value, key) for key, value in (constants or {}).items()]
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info(*v) for v in inputs],
        [helper.make_tensor_value_info(*v) for v in outputs],
        initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    directory = root / name / "1"
    directory.mkdir(parents=True)
    (directory / "model.onnx").write_bytes(model.SerializeToString())
    if config:
        (root / name / "config.pbtxt").write_text(config)


def write_all(root: Path) -> Path:
    f32, i64, node = TensorProto.FLOAT, TensorProto.INT64, helper.make_node
    identity = [node("Identity", ["x"], ["y"])]
    write(
        root,
        "types",
        [node("Identity", [f"in_{name}"], [f"out_{name}"]) for name in TYPES],
        [(f"in_{name}", kind, ["N", "K"]) for name, kind in TYPES.items()],
        [(f"out_{name}", kind, ["N", "K"]) for name, kind in TYPES.items()],
    )
    write(root, "sequence", identity, [("x", f32, ["S"])], [("y", f32, ["S"])], ONE)
    # Nearly the same.
    nearly = {"bit": np.array(0.01, dtype=np.float32)}
    write(root, "nearly", [node("Add", ["x", "bit"], ["y"])], [("x", f32, ["S"])], [("y", f32, ["S"])], ONE, nearly)
    write(root, "scalar", [node("Neg", ["x"], ["y"])], [("x", f32, [])], [("y", f32, [])], ONE)
    reshaped = "dims: [1] reshape { shape: [] } data_type: TYPE_FP32"
    config = f'max_batch_size: 64\n{ONE}input {{ name: "x" {reshaped} }}\noutput {{ name: "y" {reshaped} }}\n'
    write(root, "configured", [node("Neg", ["x"], ["y"])], [("x", f32, ["N"])], [("y", f32, ["N"])], config)
    # Picks table[x] and says which x: an index beyond the table fails when it runs. The queue makes
    # batches certain.
    write(
        root,
        "pick",
        [node("Gather", ["table", "x"], ["y"]), node("Identity", ["x"], ["which"])],
        [("x", i64, ["N", 1])],
        [("y", f32, ["N", 1]), ("which", i64, ["N", 1])],
        f"{ONE}dynamic_batching {{ max_queue_delay_microseconds: 100000 }}\n",
        {"table": np.arange(100, dtype=np.float32) * 10},
    )
    # Declares that it keeps the batch, and does not.
    write(
        root,
        "liar",
        [node("Compress", ["x", "kept"], ["y"], axis=0)],
        [("x", f32, ["N", 3])],
        [("y", f32, ["N", 3])],
        ONE,
        {"kept": np.array([True])},
    )
    (root / "model_1" / "1").mkdir(parents=True)
    (root / "model_1" / "1" / "model.onnx").symlink_to(EXAMPLE / "1" / "model.onnx")
    return root
