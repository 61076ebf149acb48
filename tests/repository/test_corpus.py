"""The record of what the real Triton says is true: every case is shown to it again.

All cases but those that kill it share one server; each verdict and its words must be the same as in
the record, which was made with a server for each.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from amphitrite.schemas.repository.files import onnx_releases

from .cases import Case, corpus, recorded
from .judge import Verdict, alone, together

pytestmark = pytest.mark.serving


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Verdict]:
    root = tmp_path_factory.mktemp("corpus")
    return together(_apart(root)) | {case.name: alone(case.write(root / case.name)) for case in corpus() if case.kills}


def _apart(root: Path) -> dict[str, Path]:
    """The repositories that can share a server. It can have each name only once, so of a model that
    several cases have, the step of their ensembles, only the first stays."""
    repositories = {case.name: case.write(root / case.name) for case in corpus() if not case.kills}
    seen: dict[str, object] = {}
    for case in corpus():
        for model in () if case.kills else sorted(case.models):
            content = {path: value for path, value in case.files.items() if path.startswith(f"{model}/")}
            if model in seen:
                shutil.rmtree(repositories[case.name] / model)
            assert seen.setdefault(model, content) == content, f"{case.name}: another model is called {model}"
    return repositories


def test_the_corpus_is_as_large_as_it_must_be() -> None:
    refused = [name for name, row in recorded().items() if row["verdict"] == "refused"]
    assert set(recorded()) == {case.name for case in corpus()}
    assert (len(refused) >= 60, len(recorded()) - len(refused) >= 25) == (True, True)


@pytest.mark.parametrize("case", corpus(), ids=lambda case: case.name)
def test_triton_still_says_what_is_recorded(verdicts: dict[str, Verdict], case: Case) -> None:
    verdict, row = verdicts[case.name], recorded()[case.name]
    release = onnx_releases.installed()
    if case.refused_from is not None and release is not None and release < case.refused_from:
        assert verdict.loads, verdict.words
        return
    assert ("loads" if verdict.loads else "refused") == row["verdict"], verdict.words
    if not case.kills:  # How it dies is chance.
        assert [_lasting(words) for words in verdict.words] == [_lasting(words) for words in row["says"]]


def _lasting(words: str) -> str:
    """Without what another release of ONNX Runtime may word in another way."""
    return words.partition("[ONNXRuntimeError]")[0]
