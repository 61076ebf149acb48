"""Opening a database: made private, brought to the newest schema, refused when it is newer."""

from __future__ import annotations

import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Column, MetaData, delete, insert, inspect, select, text, update

from amphitrite.controlplane.store import migrations
from amphitrite.controlplane.store.migrations import row_copies
from amphitrite.controlplane.store.sql.tables import REVISION, metadata
from amphitrite.controlplane.store.sql.transactions import Database
from amphitrite.controlplane.store.state.database import SqlStore, open_store
from amphitrite.schemas.errors import Error


def test_the_newest_revision_makes_exactly_the_tables(store: SqlStore) -> None:
    with store.database.read() as connection:
        assert migrations.current_revision(connection) == REVISION
        context = MigrationContext.configure(connection, opts={"include_name": not_a_copy})
        assert compare_metadata(context, metadata) == []


def not_a_copy(name: str | None, *_: Any) -> bool:
    return not str(name).startswith(row_copies.PREFIX)


@pytest.mark.parametrize("kind", ["sqlite"])
def test_each_row_has_a_second_copy_with_all_columns(store: SqlStore) -> None:
    """A revision that adds a table or a column writes the copies again."""
    with store.database.read() as connection:
        inspector = inspect(connection)
        copies = {table: inspector.get_indexes(table) for table in metadata.tables}
    found = {
        table: {*index["column_names"]}
        for table, indexes in copies.items()
        for index in indexes
        if index["name"] == f"{row_copies.PREFIX}{table}"
    }
    tables = [table for table in metadata.sorted_tables if table.name not in row_copies.WITHOUT]
    wanted = {table.name: {*table.columns.keys()} for table in tables if {*table.columns} != {*table.primary_key}}
    assert found == wanted


@pytest.mark.parametrize("kind", ["postgresql"])
def test_what_is_put_in_order_is_so_by_characters_numbers(store: SqlStore) -> None:
    """On a database that was made for some language too. Comparing metadata does not look at
    collations."""
    query = "SELECT table_name, column_name, collation_name FROM information_schema.columns"
    with store.database.read() as connection:
        found = {(row.table_name, row.column_name): row.collation_name for row in connection.execute(text(query))}
        dialect = connection.dialect
    wanted = {(t.name, c.name): c.type for t in metadata.sorted_tables for c in t.columns}
    collations = {where: getattr(kind.dialect_impl(dialect), "collation", None) for where, kind in wanted.items()}
    assert {where: found[where] for where in wanted} == collations
    assert {found["blobs", "path"], found["model_files", "blob_path"], found["deployments", "key"]} == {"C"}


def test_the_named_revision_is_the_newest() -> None:
    assert ScriptDirectory(str(Path(migrations.__file__).parent)).get_heads() == [REVISION]


SETTINGS = {
    "sqlite": {
        "PRAGMA journal_mode": "wal",
        "PRAGMA foreign_keys": 1,
        "PRAGMA synchronous": 2,
        "PRAGMA busy_timeout": 30_000,
    },
    "postgresql": {
        "SHOW statement_timeout": "1min",
        "SHOW lock_timeout": "30s",
        "SHOW idle_in_transaction_session_timeout": "2min",
        "SHOW transaction_isolation": "repeatable read",
        "SHOW transaction_read_only": "on",
    },
}


def test_settings_of_every_connection(store: SqlStore, kind: str) -> None:
    with store.database.read() as connection:
        found = {query: connection.exec_driver_sql(query).scalar() for query in SETTINGS[kind]}
    assert found == SETTINGS[kind]


def test_the_file_and_its_companions_are_private(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store.db")
    store.put_endpoint({"name": "ep1"}, if_match=None, if_none_match=False, now=1.0)
    files = list(tmp_path.glob("store.db*"))
    assert len(files) == 3
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    store.close()


@pytest.mark.parametrize("url", ["{path}", "sqlite:///{path}"])
def test_what_was_written_is_there_the_next_time(tmp_path: Path, url: str) -> None:
    address = url.format(path=tmp_path / "deep" / "store.db")
    first = open_store(address)
    record, operation = first.put_endpoint({"name": "ep1"}, if_match=None, if_none_match=False, now=1.0)
    first.close()
    second = open_store(address)
    assert second.get_endpoint("ep1") == record and second.get_operation(operation.id) == operation
    second.close()


@pytest.fixture
def store(database_url: str) -> Iterator[SqlStore]:
    """In a database that goes with the test: nobody else may get its schema."""
    opened = open_store(database_url)
    yield opened
    opened.close()


def leave_by_newer(store: SqlStore, oldest: str) -> None:
    """As a newer version leaves it that says: programs of revision ``oldest`` work on this."""
    with store.database.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        connection.execute(text("UPDATE schema_support SET oldest = :oldest"), {"oldest": oldest})


@pytest.mark.parametrize("oldest", ["9999", "9998"])
def test_a_newer_schema_is_refused(store: SqlStore, oldest: str) -> None:
    leave_by_newer(store, oldest)
    with pytest.raises(Error) as caught:
        migrations.migrate(store.database)
    assert caught.value.code == "RuntimeUnavailable"
    assert "9999" in caught.value.message and REVISION in caught.value.message
    assert caught.value.hint and "version of amphitrite that wrote it" in caught.value.hint


@pytest.mark.parametrize("oldest", ["0001", REVISION])
def test_a_newer_schema_that_this_version_works_on_is_left_alone(store: SqlStore, oldest: str) -> None:
    leave_by_newer(store, oldest)
    migrations.migrate(store.database)
    with store.database.read() as connection:
        assert migrations.current_revision(connection) == "9999"
    assert store.put_endpoint({"name": "ep1"}, if_match=None, if_none_match=False, now=1.0)[0].generation == 1


def test_of_many_that_start_at_once_one_makes_the_schema(database_url: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        stores = [opened.result() for opened in [pool.submit(open_store, database_url) for _ in range(4)]]
    for store in stores:
        assert store.list_endpoints() == []
        store.close()


def test_programs_of_the_first_revision_work_on_the_newest(database_url: str) -> None:
    """Their statements name every column of revision 0001 and no other."""
    database = Database(database_url)
    migrations.migrate(database, "0001")
    old = MetaData()
    with database.read() as connection:
        old.reflect(connection)
    migrations.migrate(database)
    old.remove(old.tables["alembic_version"])
    with database.write() as connection:
        for table in old.sorted_tables:
            connection.execute(insert(table).values(**{c.name: value(c) for c in table.columns}))
    with database.write() as connection:
        for table in reversed(old.sorted_tables):
            (row,) = connection.execute(select(table)).mappings().all()
            assert set(row) == {c.name for c in table.columns}
            if table.name == "deployments":
                compute = connection.execute(text("SELECT compute FROM deployments")).scalar()
                assert compute == "local"
            everything = {c.name: row[c.name] for c in table.columns if not c.primary_key}
            assert everything == {} or connection.execute(update(table).values(**everything)).rowcount == 1
            assert connection.execute(delete(table)).rowcount == 1
    database.close()


def value(column: Column[Any]) -> Any:
    """Something that fits."""
    kinds = {str: "x", int: 1, float: 1.0, bool: True, object: {}, dict: {}}
    return kinds[column.type.python_type]


def test_what_is_not_a_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(b"not a database, whatever its name says" * 100)
    with pytest.raises(Error, match="not a database") as caught:
        open_store(path)
    assert (caught.value.code, caught.value.target) == ("RuntimeUnavailable", str(path))


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("mysql://u:hush@h/db", "Unsupported"),
        ("postgresql+psycopg2://u:hush@h/db", "Unsupported"),
        ("postgresql://u:hush@h:port/db", "BadArgument"),
        ("postgresql+psycopg://u:hush@127.0.0.1:1/db", "RuntimeUnavailable"),
        ("postgresql://u:hush@127.0.0.1:1/db?no_such_setting=1", "RuntimeUnavailable"),
        ("sqlite://", "Unsupported"),
        ("sqlite:///:memory:", "Unsupported"),
        ("://", "BadArgument"),
    ],
)
def test_other_addresses_are_refused(url: str, code: str) -> None:
    with pytest.raises(Error) as caught:
        open_store(url)
    assert caught.value.code == code and "hush" not in str(caught.value.to_body())


def test_without_the_driver_it_is_said_what_to_install() -> None:
    program = """import sys
sys.modules["psycopg"] = None
from amphitrite.controlplane.store.sql.transactions import Database
Database("postgresql://u:hush@h/db")"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "the PostgreSQL driver is not installed" in ended.stderr and "hush" not in ended.stderr


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Error, match="cannot open the database"):
        open_store(tmp_path / "file" / "store.db")
