"""``ml server check``: nothing is said about a good home, and each damage is."""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from amphitrite.controlplane.integrity import __main__ as program
from amphitrite.controlplane.settings.settings import Settings
from amphitrite.controlplane.store.checks.findings import Report
from amphitrite.controlplane.store.sql.transactions import Database
from amphitrite.schemas.errors import Error

from ... import postgresql
from .homes import FILES, fill

DIGEST = hashlib.sha256(FILES["m/1/model.onnx"]).hexdigest()
KINDS = {"certificates", "credentials", "records", "database", "rows", "model files", "model directories"}


@pytest.fixture
def chosen(tmp_path: Path) -> Settings:
    return fill(tmp_path / "home")


def stored(chosen: Settings, digest: str = DIGEST) -> Path:
    return chosen.home.models / "blobs" / "sha256" / digest[:2] / digest


def flip(path: Path, at: int = 40) -> None:
    path.chmod(0o600)
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def found(report: Report) -> set[tuple[str, str]]:
    return {(one.kind, one.name) for one in report.damaged}


def test_a_good_home_has_no_damage(chosen: Settings) -> None:
    report = program.check(chosen)
    assert (found(report), report.notes, set(report.checked)) == (set(), [], KINDS)
    assert report.checked["model files"] == (2, sum(map(len, FILES.values())))
    assert report.checked["model directories"][0] == 1 and report.checked["records"][0] == 5


def test_a_damaged_file_and_the_directory_that_shares_it(chosen: Settings) -> None:
    flip(stored(chosen))
    report = program.check(chosen, repair=True)
    (file, directory) = report.damaged
    assert (file.kind, file.name) == ("model files", DIGEST) and "model m:1, m/1/model.onnx" in file.problem
    assert "ml model create" in file.hint and directory.kind == "model directories"
    assert not directory.repaired, "there is nothing good to make it from"


def test_a_missing_file(chosen: Settings) -> None:
    stored(chosen).unlink()
    (file,) = program.check(chosen).damaged
    assert (file.name, file.problem.startswith("it is missing")) == (DIGEST, True)


def test_a_file_that_nothing_needs(chosen: Settings) -> None:
    other = stored(chosen, "ab" * 32)
    other.parent.mkdir(exist_ok=True)
    other.write_bytes(b"x")
    (file,) = program.check(chosen).damaged
    assert "no model and no upload" in file.problem and "prune" in file.hint


def test_a_damaged_directory_is_repaired(chosen: Settings) -> None:
    (directory,) = (chosen.home.models / "repositories").iterdir()
    laid_out = directory / "m/1/model.onnx"
    laid_out.unlink()
    laid_out.write_bytes(b"other")
    assert [one.repaired for one in program.check(chosen).damaged] == [False]
    assert [one.repaired for one in program.check(chosen, repair=True).damaged] == [True]
    assert laid_out.read_bytes() == FILES["m/1/model.onnx"] and program.check(chosen).damaged == []


def test_while_a_control_plane_runs(chosen: Settings) -> None:
    with open(chosen.home.lock_file, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        writer = Database(chosen.database_url)
        with writer.write() as connection:
            connection.execute(text("UPDATE endpoints SET phase = 'x'"))
            assert program.check(chosen).damaged == []
        writer.close()


def test_a_row_that_refers_to_nothing(chosen: Settings) -> None:
    with sqlite3.connect(chosen.home.database) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("DELETE FROM endpoints")
    connection.close()
    report = program.check(chosen)
    assert any("refers to a row of endpoints that does not exist" in one.problem for one in report.damaged)


@pytest.mark.parametrize(
    ("statement", "table"),
    [
        ("UPDATE endpoints SET document = '{\"name'", "endpoints"),
        ("UPDATE routing_tables SET content = '{}'", "routing_tables"),
        ("UPDATE routing_tables SET version = 99", "routing_tables"),
        ("UPDATE signing_keys SET private_key = 'x'", "signing_keys"),
    ],
)
def test_a_value_that_cannot_be_read(chosen: Settings, statement: str, table: str) -> None:
    with sqlite3.connect(chosen.home.database) as connection:
        connection.execute(statement)
    connection.close()
    assert found(program.check(chosen)) == {("database", f"table {table}")}


@pytest.mark.postgresql
def test_on_postgresql(tmp_path: Path) -> None:
    with postgresql.database() as url:
        chosen = fill(tmp_path / "home", url)
        assert program.check(chosen).damaged == []
        with postgresql.connect(url) as connection:
            connection.execute("UPDATE routing_tables SET content = '{}'")
        stored(chosen).unlink()
        assert found(program.check(chosen)) == {("database", "table routing_tables"), ("model files", DIGEST)}


def test_a_home_before_its_first_start(tmp_path: Path) -> None:
    chosen = fill(tmp_path / "home")
    shutil.rmtree(chosen.home.models)
    chosen.home.database.unlink()
    report = program.check(chosen)
    assert report.damaged == [] and "there is no database" in report.notes[0]
    shutil.rmtree(chosen.home.root)
    with pytest.raises(Error, match="does not exist"):
        program.check(chosen)


def test_a_database_of_another_release_is_not_read(chosen: Settings) -> None:
    with sqlite3.connect(chosen.home.database) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0006'")
    connection.close()
    report = program.check(chosen)
    assert report.damaged == [] and "start the server once with this release" in report.notes[0]


def test_the_program_prints_one_object(chosen: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    stored(chosen).unlink()
    assert program.main(["--home", str(chosen.home.root)]) == 0
    answer: Any = json.loads(capsys.readouterr().out)
    row = next(row for row in answer["checked"] if row["kind"] == "model files")
    assert (row["count"], row["damaged"]) == (2, 1) and answer["damaged"][0]["name"] == DIGEST
    assert program.main(["--home", f"{chosen.home.root}/none"]) == 1
    assert capsys.readouterr().err.startswith("amphitrite-error: ")
