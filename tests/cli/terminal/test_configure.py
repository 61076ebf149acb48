"""ml configure: what it keeps, and who wins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from amphitrite.cli.main import main
from amphitrite.cli.session.rest_client import Client
from amphitrite.cli.terminal import configured_defaults
from amphitrite.cli.terminal.options import Options, Scope, scope
from amphitrite.schemas.errors import Error


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("ML_SUBSCRIPTION", "ML_RESOURCE_GROUP", "ML_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ML_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def nobody(options: Options) -> Client:
    raise AssertionError("no server is needed")


def ml(*arguments: str) -> int:
    return main(arguments, nobody)


def test_options_environment_configured_local(home: Path) -> None:
    assert ml("configure", "--defaults", "group=g", "workspace=w") == 0
    assert ml("configure", "-d", "workspace=v") == 0
    environ = {"ML_HOME": str(home)}
    assert scope(Options(), environ) == Scope("local", "g", "v")
    assert scope(Options(), {**environ, "ML_WORKSPACE": "e"}) == Scope("local", "g", "e")
    assert scope(Options(workspace="o", resource_group="p", subscription="q"), environ) == Scope("q", "p", "o")
    assert (home.stat().st_mode & 0o777, (home / "config").read_text()) == (
        0o700,
        "[defaults]\ngroup = g\nworkspace = v\n",
    )


def test_listed_and_forgotten(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ml("configure", "--defaults", "group=g", "workspace=w w%(x)s", "subscription=s")
    assert ml("configure", "--defaults", "group=", "--list-defaults") == 0
    shown = json.loads(capsys.readouterr().out)
    assert [(entry["name"], entry["value"]) for entry in shown] == [("subscription", "s"), ("workspace", "w w%(x)s")]
    assert {entry["source"] for entry in shown} == {str(home / "config")}


def test_what_has_no_effect_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("ML_WORKSPACE", "local")
    assert ml("configure", "--defaults", "workspace=w", "location=westeurope") == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        "workspace: the environment variable ML_WORKSPACE takes precedence",
        "location: stored, but without effect; there is only one location",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no option is set"),
        (["--defaults", "vm=x"], "NAME=VALUE with the names group, workspace, subscription, location"),
        (["--defaults", "group"], "found `group`; allowed: NAME=VALUE"),
        (["--defaults", "group=a\nworkspace=b"], "the value of group must not contain a line break"),
    ],
)
def test_refused(arguments: list[str], said: str, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ml("configure", *arguments) == 2
    assert said in capsys.readouterr().err
    assert not (home / "config").exists()


def test_the_subscription_is_shown_and_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert ml("account", "set", "--subscription", "s1") == 0
    assert ml("account", "set", "-s", "s2") == 0
    assert ml("account", "show", "--query", "id", "-o", "tsv") == 0
    assert capsys.readouterr().out == "s2\n"
    assert ml("account", "set") == 2


@pytest.mark.parametrize("content", [b"no section", b"\xff\xfe", b"[defaults]\ngroup=a\ngroup=b\n"])
def test_a_damaged_file_is_an_error_with_its_name(content: bytes, home: Path) -> None:
    home.mkdir()
    (home / "config").write_bytes(content)
    with pytest.raises(Error, match=r"cannot read .*config") as caught:
        configured_defaults.read()
    assert caught.value.code == "LocalFileError"
