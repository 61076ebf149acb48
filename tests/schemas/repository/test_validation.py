"""Rows: a repository, and the one line that is said about it. What Triton says of more:
``tests/repository``."""

from __future__ import annotations

import pytest

from amphitrite.schemas.repository import ANY_SERVER, Server, errors

from .memory import MODEL, configured, judged

IO = 'input { name: "x" data_type: TYPE_FP32 dims: 4 }\noutput { name: "y" data_type: TYPE_FP32 dims: 4 }\n'
PYTHON = "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"
ENSEMBLE = f"""platform: "ensemble"
{IO}ensemble_scheduling {{ step {{
  model_name: "m" model_version: -1
  input_map {{ key: "x" value: "x" }}
  output_map {{ key: "y" value: "y" }}
}} }}
"""

GOOD = ["", "# nothing", 'backend: "onnxruntime"', f"max_batch_size: 8\n{IO}", 'platform: "onnxruntime_onnx"']

BAD = [
    ('name: "n"', 'm/config.pbtxt:1:7: name: the name must be that of the model\'s directory; found "n"; allowed: "m"'),
    (
        'backend: "onnxruntim"',
        "m/config.pbtxt:1:10: backend: this server does not have the backend `onnxruntim`; "
        "allowed: onnxruntime, python",
    ),
    (
        'platform: "onnx"',
        'm/config.pbtxt:1:11: platform: unknown platform; found "onnx"; allowed: ensemble, onnxruntime_onnx, '
        "pytorch_libtorch, tensorrt_plan, tensorflow_graphdef, tensorflow_savedmodel",
    ),
    (
        "max_batch_size: 4\n" + IO.replace("FP32", "INT64", 1),
        "m/config.pbtxt:2:30: input[0].data_type: the input `x` of the model has the type TYPE_FP32; found TYPE_INT64; "
        "allowed: TYPE_FP32",
    ),
    (
        f"max_batch_size: 8\n{IO.replace('dims: 4', 'dims: 5', 1)}",
        "m/config.pbtxt:2:46: input[0].dims[0]: the input `x` of the model has the shape [N,4]; found [5]; "
        "allowed: [4] (with max_batch_size, without the batch dimension)",
    ),
    (
        'output { name: "z" }',
        'm/config.pbtxt:1:16: output[0].name: the model has no output `z`; found "z"; allowed: y',
    ),
    (
        "version_policy { specific { versions: 3 } }",
        "m/config.pbtxt:1:39: version_policy.specific.versions: no directory for version 3; allowed: 1",
    ),
    (
        "max_batch_size: 4\ndynamic_batching { preferred_batch_size: [ 4, 8 ] }",
        "m/config.pbtxt:2:47: dynamic_batching.preferred_batch_size[1]: must not be greater than max_batch_size; "
        "found 8; allowed: at most 4",
    ),
    (
        "instance_group { kind: KIND_GPU }",
        "m/config.pbtxt:1:24: instance_group[0].kind: this group is served on the CPU, because the instance has no "
        "GPU; found KIND_GPU",
    ),
    (
        'output { name: "y" label_filename: "labels.txt" }',
        'm/config.pbtxt:1:36: output[0].label_filename: `m/labels.txt` does not exist; found "labels.txt"',
    ),
    (
        'model_warmup { batch_size: 1 inputs { key: "x" value { data_type: TYPE_FP32 dims: 3 zero_data: true } } }',
        'm/config.pbtxt:1:83: model_warmup[0].inputs[0].value.dims: the dims must match those of input "x"; '
        "found [3]; allowed: [4]",
    ),
]


@pytest.mark.parametrize("config", GOOD)
def test_nothing_is_wrong(config: str) -> None:
    assert configured(config) == []


@pytest.mark.parametrize(("config", "line"), BAD)
def test_a_configuration_and_its_model(config: str, line: str) -> None:
    assert [str(finding) for finding in configured(config)] == [line]


FILES: list[tuple[dict[str, bytes | str | None], list[str]]] = [
    (
        {"m/1/model.onnx": b"text"},
        ["m/1/model.onnx: `m/1/model.onnx` is not an ONNX file, or is truncated; found 4 bytes"],
    ),
    (
        {"m/1/model.onnx": b"version https://git-lfs.github.com/spec/v1\noid sha256:00"},
        ["m/1/model.onnx: `m/1/model.onnx` is a Git LFS pointer, not the model itself"],
    ),
    ({"m/1/model.py": PYTHON}, []),
    (
        {"m/1/model.py": "class Model: pass"},
        ["m/1/model.py:1:1: `m/1/model.py` has no class TritonPythonModel; found Model"],
    ),
    ({"m/1/model.py": "def x(:"}, ["m/1/model.py:1:7: invalid Python: invalid syntax"]),
    ({"m/1/model.onnx": MODEL, "e/config.pbtxt": ENSEMBLE}, []),
    (
        {"m/1/model.onnx": MODEL, "e/config.pbtxt": ENSEMBLE.replace('"m"', '"mm"')},
        [
            "e/config.pbtxt:5:15: ensemble_scheduling.step[0].model_name: this model is not in the repository; "
            'found "mm"; allowed: m'
        ],
    ),
    (
        {
            "m/1/model.onnx": MODEL,
            "e/config.pbtxt": ENSEMBLE.replace('key: "x"', 'key: "X"').replace("FP32", "INT8", 1),
        },
        [
            'e/config.pbtxt:6:13: ensemble_scheduling.step[0].input_map: input "x" of "m" is not mapped',
            'e/config.pbtxt:6:31: ensemble_scheduling.step[0].input_map: "m" has no input "X"; allowed: x',
        ],
    ),
    ({"m/config.pbtxt": 'backend: "python"', "m/1": None}, ["m/1/model.py: `m/1/model.py` does not exist"]),
    (
        {"m/.git/HEAD": "x", "m/1/model.onnx": MODEL},
        ["m: Triton cannot tell which backend loads this model; allowed: ..."],
    ),
]


@pytest.mark.parametrize(("files", "lines"), FILES)
def test_files(files: dict[str, bytes | str | None], lines: list[str]) -> None:
    found = [str(finding) for finding in judged(files)]
    assert len(found) == len(lines)
    for line, wanted in zip(found, lines, strict=True):
        assert line.startswith(wanted.removesuffix("..."))


@pytest.mark.parametrize(
    ("config", "server", "severities"),
    [
        ("instance_group { kind: KIND_GPU }", Server(), ["warning"]),
        ("instance_group { kind: KIND_GPU }", Server(gpus=0), ["warning"]),
        ("instance_group { kind: KIND_GPU }", Server(gpus=1), []),
        ("instance_group { kind: KIND_GPU gpus: 1 }", Server(gpus=1), ["error"]),
        ("instance_group { kind: KIND_GPU gpus: [ 0, 1 ] }", Server(gpus=2), []),
        ('backend: "tensorrt"', ANY_SERVER, ["error"]),  # Its file is not there.
        ("sequence_batching { iterative_sequence: true }", Server(), ["error"]),
        ("sequence_batching { iterative_sequence: true }", ANY_SERVER, []),
        ("model_metrics { }", Server(version=(2, 60)), []),
    ],
)
def test_what_the_server_decides(config: str, server: Server, severities: list[str]) -> None:
    assert [finding.severity for finding in configured(config, server)] == severities


@pytest.mark.parametrize(
    ("ir_version", "opset", "release", "lines"),
    [
        (8, 23, (1, 23), []),
        (8, 24, (1, 23), ["operator set 24 of ai.onnx is newer than ONNX Runtime 1.23 reads; allowed: at most 23"]),
        (12, 23, (1, 23), ["the file's format is newer than ONNX Runtime 1.23 reads; found IR version 12; "
                           "allowed: at most 11"]),
        (13, 26, (1, 31), []),
        (14, 28, (1, 32), []),
        (14, 28, None, []),
        (15, 29, None, ["the file's format is newer than ONNX Runtime 1.32 reads; found IR version 15; "
                        "allowed: at most 14",
                        "operator set 29 of ai.onnx is newer than ONNX Runtime 1.32 reads; allowed: at most 28"]),
    ],
)  # fmt: skip
def test_formats_that_the_servers_onnx_runtime_reads(
    ir_version: int, opset: int, release: tuple[int, int] | None, lines: list[str]
) -> None:
    """One file for two servers: it depends on the release that each of them has."""
    model = MODEL[:1] + bytes([ir_version]) + MODEL[2:-1] + bytes([opset])
    found = judged({"m/1/model.onnx": model}, Server(gpus=0, onnxruntime=release))
    assert [finding.sentence for finding in found] == lines


def test_modules_that_the_server_has_not() -> None:
    text = f"import numpy\nimport beside\ntry:\n    import torch\nexcept ImportError:\n    pass\n{PYTHON}"
    files = {"m/1/model.py": text, "m/1/beside.py": ""}
    assert judged(files) == []
    found = judged(files, Server(has_module=lambda name: False))
    assert [str(finding) for finding in found] == [
        "m/1/model.py:1:1: this server does not have the Python module `numpy`"
    ]


def test_what_triton_loads_and_nobody_means_is_only_warned_of() -> None:
    found = judged({"m/1/model.py": "class TritonPythonModel: pass", "model.onnx": b""})
    assert ([finding.code for finding in found], errors(found)) == (["stray-file", "python-execute"], [])
