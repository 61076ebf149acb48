"""The validator's completion and those of both backends say the same of every graph and
configuration."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from amphitrite.dataplane.triton.backends.onnxruntime import completion as backend
from amphitrite.dataplane.triton.backends.onnxruntime.tensors import TYPES
from amphitrite.dataplane.triton.backends.onnxruntime.tensors import Tensor as BackendTensor
from amphitrite.schemas.errors import Error
from amphitrite.schemas.repository.config.text_format import parse
from amphitrite.schemas.repository.models.rule_report import Report
from amphitrite.schemas.repository.onnx import graph_file
from amphitrite.schemas.repository.rules import completion

from ...dataplane.triton import completions

_ONNX = {word: kind for kind, (word, _) in TYPES.items()}
_TYPES = st.sampled_from(["TYPE_FP32", "TYPE_INT64", "TYPE_STRING"])
_SHAPES = st.lists(st.sampled_from(["N", "M", None, 1, 4]), max_size=3).map(tuple)
_DIMS = st.lists(st.sampled_from([-1, 1, 4]), max_size=3)


@st.composite
def tensors(draw: st.DrawFn) -> list[graph_file.Tensor]:
    """``a`` and perhaps ``b`` in, ``c`` and perhaps ``d`` out; outputs with all their dimensions
    named, because ONNX Runtime infers the others."""
    found = []
    for kind, names in (("input", "ab"), ("output", "cd")):
        for name in names[: draw(st.integers(1, 2))]:
            word, shape = draw(_TYPES), draw(_SHAPES)
            shape = shape if kind == "input" else tuple("K" if d is None else d for d in shape)
            found.append(graph_file.Tensor(kind, name, word, word, shape))
    return found


@st.composite
def configs(draw: st.DrawFn) -> dict[str, Any]:
    config: dict[str, Any] = {"max_batch_size": draw(st.sampled_from([0, 0, 4])), "input": [], "output": []}
    for kind, names in (("input", "abx"), ("output", "cdx")):
        for name in draw(st.lists(st.sampled_from(names), unique=True, max_size=2)):
            entry: dict[str, Any] = {"name": name, "data_type": draw(_TYPES), "dims": draw(_DIMS)}
            if draw(st.booleans()) and entry["dims"]:
                entry["reshape"] = {"shape": draw(_DIMS)}
            config[kind].append(entry)
    return config


def text(config: dict[str, Any]) -> str:
    lines = [f"max_batch_size: {config['max_batch_size']}"]
    for kind in ("input", "output"):
        for entry in config[kind]:
            reshape = f"reshape {{ shape: {entry['reshape']['shape']} }}" if "reshape" in entry else ""
            name, data_type, dims = entry["name"], entry["data_type"], entry["dims"]
            lines.append(f'{kind} {{ name: "{name}" data_type: {data_type} dims: {dims} {reshape} }}')
    return "\n".join(lines)


@settings(max_examples=150, deadline=None)
@given(tensors(), configs())
def test_they_agree(graph_tensors: list[graph_file.Tensor], config: dict[str, Any]) -> None:
    parsed, findings = parse(text(config), "c")
    assert findings == []
    inputs = tuple(t for t in graph_tensors if t.kind == "input")
    outputs = tuple(t for t in graph_tensors if t.kind == "output")
    report = Report("m", "c")
    ours = completion.complete(report, parsed, graph_file.Graph(inputs=inputs, outputs=outputs), "m/1/model.onnx")
    declared = [BackendTensor(t.kind, t.name, _ONNX[str(t.type)], t.shape or ()) for t in graph_tensors]
    theirs, native = (_outcome(of, config, declared) for of in (backend.complete, completions.native))
    assert native == theirs
    if isinstance(theirs, str):
        assert report.findings, theirs
        return
    assert report.findings == []
    if ours.signature is None:
        return  # It depends on what ONNX Runtime infers.
    assert ours.signature.max_batch_size == theirs.max_batch_size
    for mine, other in ((ours.signature.inputs, theirs.inputs), (ours.signature.outputs, theirs.outputs)):
        assert [(t.name, t.type, list(t.dims)) for t in mine] == [
            (entry["name"], entry["data_type"], list(entry["dims"])) for entry in other
        ]


def _outcome(
    complete: completions.Complete, config: dict[str, Any], declared: list[BackendTensor]
) -> backend.Completion | str:
    """What comes out, or the words of the refusal."""
    try:
        return complete(config, declared)
    except Error as error:
        return error.message
