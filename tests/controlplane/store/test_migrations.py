"""Opening a database: made private, brought to the newest schema, refused when it is newer."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from amphitrite.controlplane.store import migrations
from amphitrite.controlplane.store.database import SqlStore, open_store
from amphitrite.controlplane.store.tables import REVISION, metadata
from amphitrite.schemas.errors import Error


def test_the_newest_revision_makes_exactly_the_tables(store: SqlStore) -> None:
    with store.database.read() as connection:
        assert migrations.found_revision(connection) == REVISION
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_the_named_revision_is_the_newest() -> None:
    assert ScriptDirectory(str(Path(migrations.__file__).parent)).get_heads() == [REVISION]


def test_settings_of_every_connection(store: SqlStore) -> None:
    with store.database.read() as connection:
        found = [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "foreign_keys", "synchronous", "busy_timeout")
        ]
    assert found == ["wal", 1, 2, 30_000]


def test_the_file_and_its_companions_are_private(store: SqlStore) -> None:
    store.put_endpoint({"name": "ep1"}, if_match=None, if_none_match=False, now=1.0)
    files = list(store.database.path.parent.glob("store.db*"))
    assert len(files) == 3
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


@pytest.mark.parametrize("url", ["{path}", "sqlite:///{path}"])
def test_what_was_written_is_there_the_next_time(tmp_path: Path, url: str) -> None:
    address = url.format(path=tmp_path / "deep" / "store.db")
    first = open_store(address)
    record, operation = first.put_endpoint({"name": "ep1"}, if_match=None, if_none_match=False, now=1.0)
    first.close()
    second = open_store(address)
    assert second.get_endpoint("ep1") == record and second.get_operation(operation.id) == operation
    second.close()


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    open_store(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    with pytest.raises(Error) as caught:
        open_store(path)
    assert caught.value.code == "RuntimeUnavailable"
    assert "9999" in caught.value.message and REVISION in caught.value.message
    assert caught.value.hint and "newer version" in caught.value.hint


def test_what_is_not_a_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(b"not a database, whatever its name says" * 100)
    with pytest.raises(Error, match="not a database") as caught:
        open_store(path)
    assert (caught.value.code, caught.value.target) == ("RuntimeUnavailable", str(path))


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("postgresql://u:hush@h/db", "Unsupported"),
        ("sqlite://", "Unsupported"),
        ("sqlite:///:memory:", "Unsupported"),
        ("://", "BadArgument"),
    ],
)
def test_other_addresses_are_refused(url: str, code: str) -> None:
    with pytest.raises(Error) as caught:
        open_store(url)
    assert caught.value.code == code and "hush" not in caught.value.message


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Error, match="cannot open the database"):
        open_store(tmp_path / "file" / "store.db")
