"""The generated tables are what the wheel, ONNX and ONNX Runtime say."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from tritonclient.grpc import model_config_pb2

from amphitrite.schemas.repository.files import onnx_releases

ROOT = Path(__file__).parents[3]
LIMITS = onnx_releases.limits(onnx_releases.installed())
GENERATOR = runpy.run_path(str(ROOT / "docs" / "model_config_table.py"))


def test_the_table_of_fields_is_the_servers() -> None:
    assert GENERATOR["TARGET"].read_text() == GENERATOR["generated"](), "python docs/model_config_table.py"


def test_later_fields_are_those_of_a_later_triton() -> None:
    file = GENERATOR["FileDescriptorProto"]()
    model_config_pb2.DESCRIPTOR.CopyToProto(file)
    messages = GENERATOR["table"](file)["messages"]
    for message, fields in GENERATOR["LATER"].items():
        for name, field in fields.items():
            assert {k: v for k, v in field.items() if k != "since"} == messages[message][name], (message, name)


def test_the_operators_are_those_of_onnx() -> None:
    assert GENERATOR["OPERATORS"].read_text() == GENERATOR["operators"](), "python docs/model_config_table.py"


def model(ir_version: int = 8, **opsets: int) -> bytes:
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", tensors[:1], tensors[1:])
    versions = {"": 17} | {domain.replace("_", "."): version for domain, version in opsets.items()}
    ids = [helper.make_opsetid(domain, version) for domain, version in versions.items()]
    return bytes(helper.make_model(graph, opset_imports=ids, ir_version=ir_version).SerializeToString())


def loads(content: bytes) -> bool:
    try:
        onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    except Exception:  # ONNX Runtime's exceptions have no class in common but this one.
        return False
    return True


@pytest.mark.parametrize("more", [0, 1])
def test_the_newest_format_is_onnx_runtimes(more: int) -> None:
    assert loads(model(ir_version=LIMITS.ir_version + more)) is (more == 0)


@pytest.mark.parametrize("domain", ["", "ai.onnx.ml", "com.microsoft"])
def test_the_newest_operator_sets_are_onnx_runtimes(domain: str) -> None:
    newest = LIMITS.opsets[domain]
    versions: dict[str, Any] = {domain: newest}
    assert (loads(model(**versions)), loads(model(**{domain: newest + 1}))) == (True, False)


def test_the_table_of_operators_covers_the_newest_release() -> None:
    assert onnx.defs.onnx_opset_version() >= onnx_releases.limits().opsets[""]


def test_the_table_of_releases_covers_the_range_that_is_installed() -> None:
    """Another bound needs another look at the table."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    first, end = re.findall(r'"onnxruntime>=1\.(\d+),<1\.(\d+)"', text)[0]
    assert ((1, int(first)), (1, int(end) - 1)) == (onnx_releases.OLDEST, onnx_releases.NEWEST)


def test_the_installed_release_is_the_one_that_is_imported() -> None:
    release = onnx_releases.installed()
    assert release is not None
    assert onnxruntime.__version__.startswith(f"{release[0]}.{release[1]}.")
