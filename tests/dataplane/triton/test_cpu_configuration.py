"""Rows: what config.pbtxt says of GPUs, and what it says instead on an instance without one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from amphitrite.dataplane.triton import cpu_repository
from amphitrite.dataplane.triton.cpu_configuration import CpuConfiguration, note, on_cpu
from amphitrite.schemas.repository.config.text_format import parse

ROWS = [
    ("instance_group { kind: KIND_GPU }", "instance_group { kind: KIND_CPU }", 1),
    ("# KIND_GPU\ninstance_group{kind:KIND_GPU}", "# KIND_GPU\ninstance_group{kind:KIND_CPU}", 2),
    ("instance_group {\n\tcount: 2\tkind: 1 }", "instance_group {\n\tcount: 2\tkind: KIND_CPU }", 2),
    ("instance_group { kind: KIND_GPU gpus: [ 0, 1 ] }", "instance_group { kind: KIND_CPU                }", 1),
    ("instance_group { kind: 1, gpus: 0; count: 2 }", "instance_group { kind: KIND_CPU,          count: 2 }", 1),
    ("instance_group { gpus: 0 gpus: 1 }", "instance_group {                 }", 1),
    ("instance_group { gpus: [\n 0,\n 1 ] }", "instance_group {        \n   \n     }", 2),
    (
        "instance_group [ { kind: KIND_CPU }, { kind: KIND_GPU }, { kind: KIND_MODEL } ]",
        "instance_group [ { kind: KIND_CPU }, { kind: KIND_CPU }, { kind: KIND_MODEL } ]",
        1,
    ),
    ('name: "é"  instance_group { kind: KIND_GPU }', 'name: "é"  instance_group { kind: KIND_CPU }', 1),
]  # fmt: skip

UNCHANGED = [
    "",
    "instance_group { kind: KIND_CPU }",
    "instance_group { count: 2 }",
    'parameters { key: "KIND_GPU" value { string_value: "KIND_GPU" } }',
    "instance_group { kind: KIND_GPU } nonsense",
]


@pytest.mark.parametrize(("text", "wanted", "line"), ROWS)
def test_gpu_groups_are_on_the_cpu(text: str, wanted: str, line: int) -> None:
    (made,) = on_cpu(["m/config.pbtxt", "m/1/model.onnx"], lambda path: text)
    assert (made.text, made.line) == (wanted, line)
    config, findings = parse(made.text, made.path)
    assert findings == []
    assert [group.numbers("gpus") for group in config.children("instance_group") if group.has("gpus")] == []
    assert on_cpu(["m/config.pbtxt"], lambda path: made.text) == ()


@pytest.mark.parametrize("text", UNCHANGED)
def test_other_configurations_stay(text: str) -> None:
    assert on_cpu(["m/config.pbtxt"], lambda path: text) == ()


def test_the_note_names_file_and_line() -> None:
    made = [CpuConfiguration("a/config.pbtxt", 3, ""), CpuConfiguration("b/config.pbtxt", 1, "")]
    assert note(made, "it has none") == (
        "a/config.pbtxt:3, b/config.pbtxt:1: KIND_GPU is served on the CPU, because it has none"
    )
    assert note([], "it has none") is None


def test_a_repository_of_links_with_its_own_configurations(tmp_path: Path) -> None:
    store = tmp_path / "store"
    for model, kind in (("gpu", "KIND_GPU"), ("cpu", "KIND_CPU")):
        (store / model / "1").mkdir(parents=True)
        (store / model / "1" / "model.onnx").write_text(model)
        (store / model / "config.pbtxt").write_text(f"instance_group {{ kind: {kind} }}\r\n")
    replaced = cpu_repository.configurations(store)
    for _ in range(2):
        made = cpu_repository.lay_out(store, tmp_path / "made", replaced)
    assert (made / "gpu" / "config.pbtxt").read_bytes() == b"instance_group { kind: KIND_CPU }\r\n"
    assert (made / "gpu" / "1" / "model.onnx").read_text() == "gpu"
    assert os.readlink(made / "cpu") == str(store / "cpu")
    assert (store / "gpu" / "config.pbtxt").read_bytes() == b"instance_group { kind: KIND_GPU }\r\n"
