"""Ctrl-C: what is said about the change that goes on, and what the same command does afterwards."""

from __future__ import annotations

import sys

import httpx
import pytest

from amphitrite.controlplane.core.observed.status import Ref

from ...tiny_onnx import tiny
from ..conftest import Stage

BLUE = "name: blue\nendpoint_name: ep-1\nmodel: azureml:pets:1\ninstance_type: Standard_DS3_v2\n"
SCHEMA = "https://azuremlschemas.azureedge.net/latest/managedOnlineEndpoint.schema.json"
BOTH = f"$schema: {SCHEMA}\nname: ep-1\n---\n{BLUE}"
SHOW, WAIT = "ml online-deployment show -n blue -e ep-1", "ml online-deployment wait -n blue -e ep-1"
FOLLOWED = f"hint: follow it with `{WAIT}`, or repeat the command"
UNDO = "hint: undo it with `ml online-deployment delete -n blue -e ep-1 --yes`"
PUT_BLUE, POLL = "PUT .../ep-1/deployments/blue", "GET .../mfeOperationsStatus/"

#: Command, the request in which Ctrl-C comes, stderr.
ROWS = [
    (
        "online-endpoint create -n ep-2",
        POLL,
        [
            "interrupted: the control plane goes on creating endpoint ep-2",
            "hint: follow it with `ml online-endpoint wait -n ep-2`, or repeat the command",
            "hint: undo it with `ml online-endpoint delete -n ep-2 --yes`",
        ],
    ),
    (
        "deployment create -f blue.yml",
        POLL,
        ["interrupted: the control plane goes on creating deployment blue", FOLLOWED, UNDO],
    ),
    (
        "--only-show-errors deployment create -f blue.yml",
        PUT_BLUE,
        [
            "interrupted: the control plane may be creating deployment blue: the answer had not arrived",
            f"hint: see it with `{SHOW}`; repeating the command is safe",
            UNDO,
        ],
    ),
    (
        "deployment create -f inline.yml",
        "PUT .../model.onnx",
        ["interrupted: the control plane is not creating deployment blue: the request was not sent"],
    ),
    (
        "endpoint update -n ep-1 --set tags.a=b",
        POLL,
        [
            "interrupted: the control plane goes on updating endpoint ep-1",
            "hint: follow it with `ml online-endpoint wait -n ep-1`, or repeat the command",
            "hint: undo it with `ml online-endpoint update -n ep-1 ...`",
        ],
    ),
    (
        "endpoint delete -n ep-1 --yes",
        POLL,
        [
            "interrupted: the control plane goes on deleting endpoint ep-1",
            "hint: follow it with `ml online-endpoint wait -n ep-1 --deleted`, or repeat the command",
        ],
    ),
    ("endpoint show -n ep-1", "GET .../ep-1", []),
    ("apply -f both.yml", "GET .../ep-1", ["interrupted: nothing was changed"]),
    (
        "deployment create -f blue.yml",
        "GET .../ep-1",
        ["interrupted: the control plane is not creating deployment blue: the request was not sent"],
    ),
    (
        "model create -n pets -p other",
        "PUT .../model.onnx",
        [
            "interrupted: no version of pets was registered",
            "hint: repeat the command; files sent without a version are deleted after a day",
        ],
    ),
]


def ml(stage: Stage, line: str) -> tuple[int, str, str]:
    return stage.run(*line.split())


@pytest.fixture
def ready(stage: Stage) -> Stage:
    for name, text in {
        "repository/m/1/model.onnx": "x",
        "other/m/1/model.onnx": "y",
        "blue.yml": BLUE,
        "both.yml": BOTH,
        "inline.yml": BLUE.replace("azureml:pets:1", "{path: other, type: custom_model}"),
    }.items():
        (stage.directory / name).parent.mkdir(parents=True, exist_ok=True)
        (stage.directory / name).write_bytes(tiny(text) if name.endswith(".onnx") else text.encode())
    assert ml(stage, "model create -n pets -p repository -t triton_model")[0] == 0
    assert ml(stage, "endpoint create -n ep-1")[0] == 0
    return stage


def press(stage: Stage, request: str) -> None:
    """Ctrl-C in the next request like ``request``: a method, and a part of the path."""
    method, part = request.split(" ...")
    stage.machine.interrupted_in = lambda one: one.method == method and part in one.url.path


@pytest.mark.parametrize(("command", "request_", "said"), ROWS, ids=[row[0] for row in ROWS])
def test_what_goes_on_is_said(ready: Stage, command: str, request_: str, said: list[str]) -> None:
    press(ready, request_)
    code, out, err = ml(ready, command)
    assert ready.machine.interrupted_in is None, "the request was never sent"
    assert (code, out, [line for line in err.splitlines() if line]) == (130, "", said)


@pytest.mark.parametrize("request_", [POLL, PUT_BLUE])
def test_the_same_command_goes_on_where_it_was(ready: Stage, request_: str) -> None:
    press(ready, request_)
    assert ml(ready, "deployment create -f blue.yml")[0] == 130
    code, out, err = ml(ready, "deployment create -f blue.yml --query provisioning_state -o tsv")
    known = "note: deployment blue exists already with this document\n" if request_ == POLL else ""
    assert (code, out, err) == (0, "Succeeded\n", known)


class Keyboard:
    """A terminal at which ``answer`` is typed, or Ctrl-C for None."""

    def __init__(self, answer: str | None) -> None:
        self.answer = answer

    def isatty(self) -> bool:
        return True

    def readline(self) -> str:
        if self.answer is None:
            raise KeyboardInterrupt
        return self.answer


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        ("n\n", 1, "nothing was changed\n"),
        ("", 1, "nothing was changed\n"),
        (None, 130, "\ninterrupted: nothing was changed\n"),
    ],
    ids=["no", "end of input", "Ctrl-C"],
)
def test_a_question_that_is_not_confirmed_changes_nothing(
    ready: Stage, monkeypatch: pytest.MonkeyPatch, answer: str | None, code: int, said: str
) -> None:
    monkeypatch.setattr(sys, "stdin", Keyboard(answer))
    found = ml(ready, "endpoint delete -n ep-1")
    assert found == (code, "", f"Delete endpoint ep-1 and its deployments? (y/n): {said}")
    assert ml(ready, "endpoint show -n ep-1 --query name -o tsv")[1] == "ep-1\n"


@pytest.mark.parametrize("command", ["deployment get-logs -n blue -e ep-1 -f", "endpoint list"])
def test_the_prompt_of_the_shell_has_a_line_of_its_own(
    ready: Stage, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """The terminal writes ^C where the cursor is."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    ready.machine.interrupted_in = lambda _: True
    assert ml(ready, command) == (130, "", "\n")


def test_apply_says_what_was_done_and_goes_on(ready: Stage) -> None:
    (ready.directory / "both.yml").write_text(BOTH.replace("ep-1", "ep-3"))
    press(ready, "PUT .../ep-3/deployments/blue")
    code, _, err = ml(ready, "apply -f both.yml")
    assert code == 130
    assert "interrupted: done until then: endpoint/ep-3\nhint: run the command again" in err
    assert ml(ready, "apply -f both.yml")[0] == 0
    assert ml(ready, "deployment show -n blue -e ep-3 --query provisioning_state -o tsv")[1] == "Succeeded\n"


def test_a_failure_is_waited_for_with_its_cause_and_tried_again_by_the_same_document(ready: Stage) -> None:
    runtime, models = ready.machine.runtime, ready.machine.services.models
    runtime.broken[models.get_version("pets", "1").digest] = "the model has no such operator"
    code, _, failed = ml(ready, "deployment create -f blue.yml")
    assert code == 1 and "no such operator" in failed
    assert ml(ready, "deployment wait -n blue -e ep-1") == (1, "", failed)
    assert ml(ready, "deployment wait -n blue -e ep-1 --created")[0] == 1
    assert ml(ready, "deployment wait -n blue -e ep-1 --exists") == (0, "", "")
    runtime.broken.clear()
    code, _, err = ml(ready, "deployment create -f blue.yml -o none")
    assert (code, err) == (0, "note: deployment blue exists with this document, and has failed; it is tried again\n")
    assert ml(ready, "deployment wait -n blue -e ep-1") == (0, "", "")


def test_a_wait_outlives_a_restart_of_the_control_plane(ready: Stage) -> None:
    ready.machine.faults = [httpx.ConnectError("refused")] * 4
    assert ml(ready, "endpoint wait -n ep-1 --interval 0.05") == (0, "", "")
    assert ready.machine.faults == []


def test_a_name_may_be_created_again_when_its_deletion_has_ended(ready: Stage) -> None:
    services = ready.machine.services
    assert services.store.delete(Ref("ep-1"), if_match=None, now=services.clock()) is not None
    assert ml(ready, "endpoint create -n ep-1 -o none") == (0, "", "")
