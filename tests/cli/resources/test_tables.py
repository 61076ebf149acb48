"""What ``-o table`` and ``-o wide`` show of resources, also of those that have failed."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Mapping

import pytest

from amphitrite.cli.resources import resource_tables
from amphitrite.cli.terminal import colors, durations

from ...tiny_onnx import tiny
from ..conftest import Stage

LIST = ("online-deployment", "list", "-e", "pictures", "-o")
CAUSE = "classifier/1/model.py:9: ValueError: no weights"


@pytest.fixture
def pictures(stage: Stage) -> Stage:
    """An endpoint with a deployment that serves, and one that fails."""
    for name in ("good", "bad"):
        (stage.directory / name / "classifier/1").mkdir(parents=True)
        (stage.directory / name / "classifier/1/model.onnx").write_bytes(tiny(name))
        assert stage.run("model", "create", "-n", name, "-p", name, "-t", "triton_model", "-o", "none")[0] == 0
    digest = stage.machine.services.models.reference("bad", "1")["digest"]
    stage.machine.runtime.broken[digest] = CAUSE
    document = "name: {}\nendpoint_name: pictures\nmodel: azureml:{}:1\ninstance_type: {}\ninstance_count: {}\n"
    (stage.directory / "blue.yml").write_text(document.format("blue", "good", "Standard_DS3_v2", 2))
    (stage.directory / "green.yml").write_text(document.format("green", "bad", "Standard_F4s_v2", 1))
    assert stage.run("online-endpoint", "create", "-n", "pictures", "-o", "none")[0] == 0
    assert stage.run("online-deployment", "create", "-f", "blue.yml", "--all-traffic", "-o", "none")[0] == 0
    return stage


def fail(stage: Stage) -> str:
    """Create the deployment that fails; what is said about it."""
    code, out, err = stage.run("online-deployment", "create", "-f", "green.yml")
    assert (code, out) == (1, "")
    return err


def test_a_failure_begins_with_its_cause_and_the_line_of_the_users_file(pictures: Stage) -> None:
    first, second, hint = fail(pictures).splitlines()
    assert first == f"error: {CAUSE} [ResourceNotReady]"
    assert second == "  deployment 'green' has an instance that does not become ready"
    assert hint == "hint: see its log: ml online-deployment get-logs -n green -e pictures"


def test_a_deployment_that_failed_says_why(pictures: Stage) -> None:
    fail(pictures)
    pictures.machine.clock.now += 3 * 86400 + 7200
    code, out, err = pictures.run(*LIST, "table")
    assert (code, err) == (0, "")
    assert out == (
        "Name   State      Ready  Traffic (%)  Model   Instance type    Age   Message\n"
        "-----  ---------  -----  -----------  ------  ---------------  ----  "
        "------------------------------\n"
        "blue   Succeeded  2/2    100          good:1  Standard_DS3_v2  3d2h\n"
        f"green  Failed     0/1    0            bad:1   Standard_F4s_v2  3d2h  {CAUSE}\n"
    )


def test_a_name_that_the_sdk_made_does_not_fill_the_terminal(pictures: Stage) -> None:
    """A model without a name is registered under its digest."""
    made = "710fc5727819fe50b13dcb5890e6771e3314ede27902188987a55c8fe3b4101c"
    assert pictures.run("model", "create", "-n", made, "-p", "good", "-t", "triton_model", "-o", "none")[0] == 0
    green = ("-n", "green", "--set", f"model=azureml:{made}:1")
    assert pictures.run("online-deployment", "create", "-f", "blue.yml", *green, "-o", "none")[0] == 0
    table, data = pictures.run(*LIST, "table")[1], pictures.run(*LIST, "json")[1]
    assert (" 710fc5727819...:1 " in table, made in table, made in data) == (True, False, True)


def test_refused_traffic_is_not_shown_as_live(pictures: Stage) -> None:
    """Nor is a deployment said to lose traffic that it never had."""
    fail(pictures)
    update = ("online-endpoint", "update", "-n", "pictures", "-o", "none", "--traffic")
    code, _, err = pictures.run(*update, "green=10 blue=90")
    assert code == 1 and "the previous traffic stays in force" in err
    _, endpoints, _ = pictures.run("online-endpoint", "list", "-o", "table")
    assert "  blue=100 (not in force: green=10 blue=90)  " in endpoints
    blue, green = pictures.run(*LIST, "table")[1].splitlines()[2:]
    assert "100 (not in force: 90)" in blue and "0 (not in force: 10)" in green
    assert pictures.run(*update, "blue=100") == (0, "", "")
    assert "not in force" not in pictures.run("online-endpoint", "list", "-o", "table")[1]


def test_wide_has_more_columns(pictures: Stage) -> None:
    _, narrow, _ = pictures.run(*LIST, "table")
    _, wide, _ = pictures.run(*LIST, "wide")
    assert set(_headings(wide)) - set(_headings(narrow)) == {"Endpoint", "Timeout (ms)", "Concurrency", "Engine"}
    _, endpoint, _ = pictures.run("online-endpoint", "show", "-n", "pictures", "-o", "wide")
    assert _headings(endpoint) == ["Name", "State", "Ready", "Traffic (%)", "Auth", "Age", "Scoring URI"]
    _, model, _ = pictures.run("model", "show", "-n", "good", "-v", "1", "-o", "wide")
    assert _headings(model) == ["Name", "Version", "Type", "Age", "Path", "Created by"]


def _headings(table: str) -> list[str]:
    return re.split(r" {2,}", table.splitlines()[0])


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("online-endpoint list", "no endpoints in workspace local"),
        ("model list", "no models in workspace local"),
        ("environment list", "no environments in workspace local"),
    ],
)
def test_an_empty_list_says_so_beside_the_table(stage: Stage, command: str, said: str) -> None:
    assert stage.run(*command.split(), "-o", "table") == (0, "", f"{said}\n")
    assert stage.run(*command.split(), "-o", "wide", "--only-show-errors") == (0, "", "")
    assert stage.run(*command.split()) == (0, "[]\n", "")
    assert stage.run(*command.split(), "-o", "table", "--query", "[].name") == (0, "", "")


def test_an_endpoint_without_deployments(stage: Stage) -> None:
    stage.run("online-endpoint", "create", "-n", "pictures")
    assert stage.run(*LIST, "table") == (0, "", "no deployments in endpoint pictures\n")
    _, out, _ = stage.run("online-endpoint", "list", "-o", "table")
    assert _headings(out) == ["Name", "State", "Auth", "Age"]


def test_many_endpoints_are_not_counted(pictures: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource_tables, "COUNTED_ENDPOINTS_MAX", 0)
    pictures.machine.requests.clear()
    _, out, err = pictures.run("online-endpoint", "list", "-o", "table")
    assert "Ready" not in _headings(out) and "Ready is left out" in err
    assert len(pictures.machine.requests) == 1


def test_states_have_colours_on_a_terminal_only(pictures: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    fail(pictures)
    for variable in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(variable, raising=False)
    plain = pictures.run(*LIST, "table")[1]
    shown = _on_a_terminal(pictures, monkeypatch)
    assert "\x1b[32mSucceeded\x1b[0m" in shown and "\x1b[31mFailed   \x1b[0m" in shown
    assert re.sub(r"\x1b\[\d+m", "", shown) == plain
    for variable, value in {"NO_COLOR": "1", "TERM": "dumb"}.items():
        with monkeypatch.context() as patch:
            patch.setenv(variable, value)
            assert _on_a_terminal(pictures, monkeypatch) == plain


def _on_a_terminal(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a deployments' table looks like on a terminal."""
    reader, writer = os.openpty()
    with open(reader, "rb", buffering=0) as screen, open(writer, "w") as terminal, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", terminal)
        stage.run(*LIST, "table")
        terminal.flush()
        return screen.read(65536).decode().replace("\r\n", "\n")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [({}, True), ({"NO_COLOR": ""}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_where_colours_are(environ: Mapping[str, str], wanted: bool) -> None:
    assert colors.enabled(Terminal(), environ) is wanted
    assert not colors.enabled(io.StringIO(), environ)


@pytest.mark.parametrize(
    ("seconds", "age"),
    [
        (-5, "0s"),
        (119, "119s"),
        (120, "2m"),
        (190, "3m10s"),
        (1500, "25m"),
        (3 * 3600, "3h"),
        (4 * 3600 + 300, "4h5m"),
        (30 * 3600, "30h"),
        (3 * 86400 + 7200, "3d2h"),
        (12 * 86400 + 7200, "12d"),
        (3 * 365 * 86400, "3y"),
    ],
)
def test_ages(seconds: float, age: str) -> None:
    assert durations.age(seconds) == age


@pytest.mark.parametrize("text", ["2027-01-15T08:00:00.5+00:00", "2027-01-15T09:00:00.500000+0100"])
def test_both_spellings_of_an_offset(text: str) -> None:
    assert durations.epoch(text.replace(".5+", ".500000+")) == 1_800_000_000.5
