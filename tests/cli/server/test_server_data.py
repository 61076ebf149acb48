"""``ml server migrate``, ``backup`` and ``restore`` from the command line: what is said and what is
answered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ..conftest import Stage

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _no_database_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ML_DATABASE_URL", "ML_MODELS_URL"):
        monkeypatch.delenv(name, raising=False)


def test_there_and_back(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stage.run("online-endpoint", "create", "-n", "ep1")[0] == 0
    code, out, err = stage.run("server", "backup", "state.tar")
    # Before it there may be a line on what goes on, when it takes a second.
    assert code == 0 and err.endswith("the backup contains private keys and credentials; store it securely\n")
    answer = json.loads(out)
    assert answer["rows"]["endpoints"] == 1 and answer["file"] == str(stage.directory / "state.tar")
    monkeypatch.setenv("ML_HOME", str(tmp_path / "fresh"))
    code, out, err = stage.run("server", "restore", "state.tar", "-o", "json")
    assert (code, json.loads(out)["rows"]) == (0, answer["rows"])
    target = f"sqlite:///{tmp_path}/new.db"
    source = f"sqlite:///{tmp_path}/fresh/amphitrite.db"
    code, out, err = stage.run("server", "migrate", "--from", source, "--to", target, "--query", "rows.endpoints")
    assert (code, out) == (0, "1\n") and f"copied {sum(answer['rows'].values())} rows; " in err


def test_what_stays_elsewhere_is_said(stage: Stage) -> None:
    code, _, err = stage.run("server", "backup", "--models", "s3://bucket/prefix", "state.tar")
    assert code == 0
    assert "not in the backup: the content of models stays in s3://bucket/prefix\n" in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("backup", "state.tar", "--database", "sqlite:////{home}/none/x.db"), "not a database of amphitrite"),
        (("restore", "none.tar"), "none.tar: No such file"),
        (("migrate", "--from", "mysql://u@h/d", "--to", "sqlite:////{home}/new.db"), "mysql://h"),
        (("migrate", "--from", "sqlite:////{home}/x.db", "--to", "postgresql+psycopg://u:hush@h/d"), "set PGPASSWORD"),
        (("backup", "x", "--database", "postgresql+psycopg://h/d?user=u&password=hush"), "or set ML_DATABASE_URL"),
        (("start", "--database", "postgresql+psycopg://u:hush@h/d"), "--database has a password, which every user"),
        (("migrate", "--from", "sqlite:////{home}/amphitrite.db", "--to", "sqlite:////{home}/amphitrite.db"), "empty"),
    ],
)
def test_refusals_are_heard(stage: Stage, words: tuple[str, ...], says: str) -> None:
    assert stage.run("online-endpoint", "create", "-n", "ep1")[0] == 0
    home = stage.directory.parent / "home"
    code, out, err = stage.run("server", *[word.format(home=home) for word in words], "--only-show-errors")
    assert (code, out) == (1, "")
    assert err.startswith("error: ") and says in err and "hush" not in err
