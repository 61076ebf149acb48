"""What ``invoke`` says of a model's failure."""

from __future__ import annotations

import httpx
import pytest

from ..conftest import Stage

PARSING = "failed to parse the request JSON buffer: The document is empty."
HINT = "hint: the request had no body: add --request-file with the JSON that the model takes\n"


def test_another_form_of_request_is_told_the_form(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """As scoring scripts on Azure take it."""
    (stage.directory / "request.json").write_text('{"data": [1, 2]}')
    stage.run("online-endpoint", "create", "-n", "pictures", "-o", "none")
    said = "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'"
    answer = httpx.Response(424, json={"error": {"code": "ModelError", "message": said}})
    monkeypatch.setattr(stage.machine, "_score", lambda request: answer)
    code, out, err = stage.run("online-endpoint", "invoke", "-n", "pictures", "-r", "request.json")
    form = '{"inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}]}'
    assert (code, out, err.splitlines()[1:]) == (1, "", [f"hint: a model of Triton takes {form}"])


@pytest.mark.parametrize(
    ("more", "status", "hint"),
    [((), 424, HINT), ((), 413, ""), (("--request-file", "request.json"), 424, "")],
)
def test_a_failure_without_a_request_file(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...], status: int, hint: str
) -> None:
    """Triton's answer to an empty body says nothing of the option."""
    (stage.directory / "request.json").write_text("{}")
    stage.run("online-endpoint", "create", "-n", "pictures", "-o", "none")
    answer = httpx.Response(status, json={"error": PARSING})
    monkeypatch.setattr(stage.machine, "_score", lambda request: answer)
    code, out, err = stage.run("online-endpoint", "invoke", "-n", "pictures", *more)
    uri = "https://127.0.0.1:9443/endpoints/pictures/"
    assert (code, out) == (1, "")
    assert err == f"error: {uri} answered {status}: {PARSING} [ScoringFailed]\n{hint}"


@pytest.mark.parametrize(
    ("more", "note"),
    [((), "note: the request had no body: --request-file sends one\n"), (("-r", "request.json"), "")],
)
def test_an_answer_to_nothing_is_told_from_others(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...], note: str
) -> None:
    """A model with one input takes an empty body for an empty tensor."""
    (stage.directory / "request.json").write_text("{}")
    stage.run("online-endpoint", "create", "-n", "pictures", "-o", "none")
    monkeypatch.setattr(stage.machine, "_score", lambda request: httpx.Response(200, text="[]"))
    assert stage.run("online-endpoint", "invoke", "-n", "pictures", *more, "-o", "tsv") == (0, "[]\n", note)


@pytest.mark.parametrize(
    ("refused", "hint"),
    [
        ("NoTraffic", 'hint: run `ml online-endpoint update -n pictures --traffic "DEPLOYMENT=100"`\n'),
        ("NoScoringModel", ""),
    ],
)
def test_an_endpoint_without_traffic_is_told_from_other_404s(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, refused: str, hint: str
) -> None:
    (stage.directory / "request.json").write_text("{}")
    stage.run("online-endpoint", "create", "-n", "pictures", "-o", "none")
    answer = httpx.Response(404, json={"error": {"code": refused, "message": "none"}})
    monkeypatch.setattr(stage.machine, "_score", lambda request: answer)
    code, _, err = stage.run("online-endpoint", "invoke", "-n", "pictures", "-r", "request.json")
    uri = "https://127.0.0.1:9443/endpoints/pictures/"
    assert (code, err) == (1, f"error: {uri} answered 404: none [{refused}]\n{hint}")
