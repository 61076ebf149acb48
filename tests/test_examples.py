"""The example is what it says: its documents are valid, its files are those of SOURCES.md, its
picture is a cat."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import ssl
import subprocess
from pathlib import Path
from types import ModuleType

import onnxruntime
import pytest
import yaml

from amphitrite.cli.documents.document_files import load_document, validate_and_normalize
from amphitrite.controlplane.core.rules import deployment_rules
from amphitrite.dataplane.triton.backends.onnxruntime.session import options

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
SINGLE_MODEL = EXAMPLES / "single-model"
DOCUMENTS = sorted(EXAMPLES.rglob("*.yml"))

#: Last part of Azure's `$schema` address -> our kind of document.
KINDS = {
    "managedOnlineEndpoint.schema.json": "managed_online_endpoint",
    "managedOnlineDeployment.schema.json": "managed_online_deployment",
    "model.schema.json": "model",
}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(EXAMPLES)))
def test_documents_are_valid_and_can_be_honoured(path: Path) -> None:
    document = load_document(str(path))
    kind = KINDS[document.value["$schema"].rpartition("/")[2]]
    wanted = validate_and_normalize(document, kind)
    if kind == "managed_online_endpoint":
        assert deployment_rules.check_endpoint(wanted, deployments=()) == []
    if kind == "managed_online_deployment":
        model = deployment_rules.ModelFacts(
            "efficientnet-lite0", "1", "triton_model", archived=False, model_names=("model_1",)
        )
        assert (
            deployment_rules.check_deployment(wanted, siblings=0, model=model, bounds=deployment_rules.Bounds()) == []
        )


def test_documents_name_each_other() -> None:
    endpoint, model = (yaml.safe_load((SINGLE_MODEL / f"{name}.yml").read_text()) for name in ("endpoint", "model"))
    for name in ("blue", "green"):
        deployment = yaml.safe_load((SINGLE_MODEL / f"{name}-deployment.yml").read_text())
        assert deployment["name"] == name
        assert deployment["endpoint_name"] == endpoint["name"]
        assert deployment["model"] == f"azureml:{model['name']}:{model['version']}"
    assert [p.relative_to(SINGLE_MODEL / model["path"]).as_posix() for p in SINGLE_MODEL.rglob("*.onnx")] == [
        "model_1/1/model.onnx"
    ]


def test_files_are_those_of_the_sources_page() -> None:
    listed = dict(
        re.findall(
            r"^\| `([^`]+)` \|.*\| `([0-9a-f]{64})` \|$", (SINGLE_MODEL / "SOURCES.md").read_text(), re.MULTILINE
        )
    )
    assert set(listed) == {"models/model_1/1/model.onnx", "imagenet-labels.txt", "chelsea.png"}
    for name, digest in listed.items():
        assert hashlib.sha256((SINGLE_MODEL / name).read_bytes()).hexdigest() == digest, name


@pytest.fixture(scope="module")
def score() -> ModuleType:
    spec = importlib.util.spec_from_file_location("example_score", SINGLE_MODEL / "score.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_who_does_not_trust_the_server_is_told_how(
    score: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in a second terminal, where nothing has been evaluated."""

    def refuse(*_: object) -> None:
        raise ssl.SSLCertVerificationError(1, "certificate verify failed")

    monkeypatch.setattr(score, "infer", refuse)
    monkeypatch.setattr("sys.argv", ["score.py", "--scoring-uri", "https://h/", "--key", "k"])
    assert score.main() == 1
    assert 'eval "$(ml server env)"' in capsys.readouterr().err


def test_the_picture_is_a_cat(score: ModuleType) -> None:
    batch = score.preprocess(SINGLE_MODEL / "chelsea.png")
    assert (batch.shape, str(batch.dtype), batch.flags.c_contiguous) == ((1, 3, 224, 224), "float32", True)
    assert batch.min() >= -1 and batch.max() < 1
    session = onnxruntime.InferenceSession(SINGLE_MODEL / "models/model_1/1/model.onnx", options({}))
    (logits,) = session.run([score.OUTPUT], {score.INPUT: batch})
    label, probability = score.best(logits[0], (SINGLE_MODEL / "imagenet-labels.txt").read_text().splitlines())
    assert (label, probability) == ("EGYPTIAN CAT", pytest.approx(0.765, abs=0.01))


def test_the_demo_runs_the_quick_start_of_the_readme() -> None:
    script = SINGLE_MODEL / "demo.sh"
    subprocess.run(["bash", "-n", script], check=True)
    reader = re.search(r"< <\((sed .*)\)$", script.read_text(), re.MULTILINE)
    assert reader is not None
    done = subprocess.run(["bash", "-c", reader[1]], cwd=ROOT, capture_output=True, text=True, check=True)
    commands = [line for line in done.stdout.splitlines() if line]
    assert commands[0] == "make install"
    assert commands[-1] == "ml server stop"
    assert any(command.startswith("python score.py") for command in commands)
    assert not [command for command in commands if command.endswith("\\")], "one command a line"
