"""An int8 network answers the same on every CPU: with VNNI by the usual kernels, without by the
exact ones."""

from __future__ import annotations

import platform
from pathlib import Path

import onnx
import onnxruntime  # type: ignore[import-untyped]
import pytest
from onnx import TensorProto

from amphitrite.schemas.repository.files import onnx_releases

from .completions import OVERFLOWS
from .onnx_models import EXAMPLE

CPUS = {
    "Haswell": ("processor\t: 0\nflags\t\t: fpu sse4_1 avx2 bmi2\n", True),
    "Skylake-X": ("flags\t\t: avx2 avx512f avx512bw avx512_vbmi2\n", True),
    "Ice Lake": ("flags\t\t: avx2 avx512f avx512_vnni avx512_bitalg\n", False),
    "Alder Lake": ("flags\t\t: avx2 avx_vnni\nvmx flags\t: vnmi\n", False),
    "another line": ("model name\t: avx_vnni\nvmx flags\t: avx_vnni\nflags\t\t: avx2\n", True),
    "ARM": ("Features\t: fp asimd asimddp\n", True),
    "unknown": ("", True),
}


@pytest.mark.parametrize("form", OVERFLOWS)
@pytest.mark.parametrize(("cpuinfo", "wanted"), CPUS.values(), ids=CPUS)
def test_which_cpus_need_the_exact_kernels(form: str, cpuinfo: str, wanted: bool) -> None:
    assert OVERFLOWS[form](cpuinfo.splitlines(keepends=True)) is wanted


@pytest.mark.skipif(platform.machine() != "x86_64", reason="ONNX Runtime has the two kinds of kernels on x86 alone")
@pytest.mark.parametrize(("exact", "weights"), [("0", TensorProto.INT8), ("1", TensorProto.UINT8)])
def test_the_setting_chooses_the_exact_kernels(tmp_path: Path, exact: str, weights: int) -> None:
    """Those multiply unsigned weights. ONNX Runtime says what it will run by the optimised graph
    that it writes; were the setting renamed, nothing else would show it on a CPU with VNNI."""
    if (onnx_releases.installed() or (0, 0)) < (1, 25):
        pytest.skip("before 1.25 ONNX Runtime itself passes over the setting on a CPU with VNNI")
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", exact)
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    options.log_severity_level = 3  # It warns that such a file is for this machine alone.
    onnxruntime.InferenceSession(EXAMPLE / "1" / "model.onnx", options, providers=["CPUExecutionProvider"])
    graph = onnx.load(tmp_path / "optimised.onnx").graph
    kinds = {tensor.name: tensor.data_type for tensor in graph.initializer}
    found = [kinds[node.input[3]] for node in graph.node if node.op_type == "QLinearConv"]
    assert len(found) == 49
    assert set(found) == {weights}
