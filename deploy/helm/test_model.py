"""Writes the model that ``helm test`` serves: ``doubled`` is ``number`` twice over, for any number
of rows.

Decides what is in ``amphitrite/files/doubling.onnx``. Run it after a change:
``python deploy/helm/test_model.py``.
"""

from __future__ import annotations

from pathlib import Path

from onnx import TensorProto, checker, helper

FILE = Path(__file__).parent / "amphitrite" / "files" / "doubling.onnx"


def content() -> bytes:
    """The same bytes each time. Old operators and an old file format: every ONNX Runtime since 1.12
    reads them."""
    rows: list[str | int | None] = ["rows", 1]
    graph = helper.make_graph(
        [helper.make_node("Add", ["number", "number"], ["doubled"])],
        "doubling",
        [helper.make_tensor_value_info("number", TensorProto.FLOAT, rows)],
        [helper.make_tensor_value_info("doubled", TensorProto.FLOAT, rows)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8, producer_name="")
    checker.check_model(model)
    return model.SerializeToString(deterministic=True)


if __name__ == "__main__":
    FILE.write_bytes(content())
