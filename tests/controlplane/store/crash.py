"""Run as a program: end a process by SIGKILL at many lines of the store's code and look at what it
leaves.

``crash.py SCENARIO HOME EVERY [SERVER]``, in an SQLite file or in databases of the PostgreSQL at
that URL: runs the scenario once undisturbed and keeps what the store holds after each step. A child
then runs it again and kills itself at the first line of the store's code that it comes to, another
one at the line EVERY lines later, and so on to the end. Each time the store must hold what it held
after the last step that was answered, or after the one that was under way. Prints how many children
were killed.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy import URL, make_url, select

from amphitrite.controlplane import store as package
from amphitrite.controlplane.core.observed.status import Ref, Status
from amphitrite.controlplane.store.assets.model_store import ModelStore
from amphitrite.controlplane.store.content.directory_content import ContentDirectory
from amphitrite.controlplane.store.sql import tables
from amphitrite.controlplane.store.state.database import SqlStore, open_store
from amphitrite.dataplane.table.routing_table import RoutingTable
from amphitrite.schemas.errors import Error

Step = Callable[[], object]
STORE_CODE = str(Path(package.__file__).parent)
MODEL = {"name": "m", "version": "1", "digest": "d", "model_names": ["a"]}
EP, BLUE = Ref("ep1"), Ref("ep1", "blue")
#: Differs from run to run.
RANDOM = {"id", "primary_key", "secondary_key", "file"}


class Databases:
    """Where the store of a home is: in it, or in a database named as the home is."""

    def __init__(self, server: str | None) -> None:
        self._server = make_url(server) if server is not None else None

    def at(self, home: Path) -> str:
        if self._server is None:
            return f"sqlite:///{home}/store.db"
        return self._server.set(database=home.name).render_as_string(hide_password=False)

    def renew(self, home: Path) -> None:
        """An empty one for this home."""
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        if self._server is None:
            return
        with self._connect(self._server) as connection:
            known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (home.name,)).fetchone()
            if known is None:
                connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(home.name)))
        with self._connect(self._server.set(database=home.name)) as connection:
            connection.execute("DROP SCHEMA public CASCADE")  # Faster than a new database.
            connection.execute("CREATE SCHEMA public")

    def drop(self, home: Path) -> None:
        if self._server is not None:
            with self._connect(self._server) as connection:
                connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(home.name)))

    def _connect(self, url: URL) -> psycopg.Connection[tuple[object, ...]]:
        plain = url.set(drivername="postgresql").render_as_string(hide_password=False)
        return psycopg.connect(plain, autocommit=True)


databases = Databases(sys.argv[4] if len(sys.argv) > 4 else None)


def changes(home: Path) -> Iterator[Step]:
    """A life of an endpoint with a deployment."""
    store = open_store(databases.at(home))
    match: Any = {"if_match": None, "if_none_match": False}
    blue = {"name": "blue", "instance_type": "x"}
    yield lambda: store.put_endpoint({"name": "ep1"}, **match, now=1.0)
    yield lambda: store.put_deployment("ep1", blue, MODEL, **match, now=2.0)
    yield lambda: store.record({EP: Status("Succeeded", 1, "Ready"), BLUE: Status("Creating", 0, "Loading")}, now=3.0)
    yield lambda: store.publish(RoutingTable(0))
    yield lambda: store.put_endpoint({"name": "ep1", "traffic": {"blue": 100}}, **match, now=4.0)
    yield lambda: store.record({BLUE: Status("Failed", 1, "Failed", "m", Error("ResourceNotReady", "no"))}, now=5.0)
    yield lambda: store.regenerate_key("ep1", "primary", now=6.0)
    yield lambda: store.delete(EP, if_match=None, now=7.0)
    yield lambda: store.remove([EP, BLUE], now=8.0)
    yield lambda: store.put_endpoint({"name": "ep1"}, **match, now=9.0)


def uploads(home: Path) -> Iterator[Step]:
    """Files come, become models and repositories, and some go."""
    store = open_store(databases.at(home))
    content = ContentDirectory(home / "models", clock=lambda: 1e9)
    models = ModelStore(store.database, content, home / "models", clock=lambda: 1e9)

    def upload(data: bytes) -> tuple[str, int]:
        with models.blobs.begin() as body:
            body.write(data)
            return body.finish()

    def block(block_id: str, data: bytes) -> None:
        body = models.blobs.begin()
        body.write(data)
        models.blobs.put_block("LocalUpload/aa/r/m/2/model.onnx", block_id, body)

    document = {"type": "triton_model", "path": "azureml://datastores/workspaceblobstore/paths/LocalUpload/aa/r"}
    yield lambda: models.blobs.put("LocalUpload/aa/r/m/1/model.onnx", *upload(b"one"), overwrite=False)
    yield lambda: models.blobs.put("LocalUpload/bb/unused", *upload(b"unused"), overwrite=False)
    yield lambda: block("1", b"tw")
    yield lambda: block("2", b"o")
    yield lambda: models.blobs.commit_blocks("LocalUpload/aa/r/m/2/model.onnx", ["1", "2"])
    yield lambda: models.put_version("m", "1", document, now=2.0)
    yield lambda: models.repository(models.get_version("m", "1").digest)
    yield lambda: models.collect_garbage(3e9, frozenset())
    yield lambda: models.delete_versions("m", "1")
    yield lambda: models.collect_garbage(3e9, frozenset())


SCENARIOS = {"changes": changes, "uploads": uploads}


def held(home: Path) -> Any:
    """All rows but what is random; blocks are left out, as a commit drops them after it has
    ended."""
    store = open_store(databases.at(home))
    with store.database.read() as connection:
        if not store.database.is_shared:
            assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
            assert connection.exec_driver_sql("PRAGMA foreign_key_check").all() == []
        rows = {
            table.name: sorted(
                str({name: value for name, value in row.items() if name not in RANDOM})
                for row in connection.execute(select(table)).mappings()
            )
            for table in tables.metadata.sorted_tables
            if table is not tables.blocks
        }
    check_files(store, home)
    store.close()
    return rows


def check_files(store: SqlStore, home: Path) -> None:
    """Content is what its name says and is there for every row; a repository is complete."""
    if not (home / "models").exists():
        return
    content = ContentDirectory(home / "models", clock=lambda: 1e9)
    models = ModelStore(store.database, content, home / "models", clock=lambda: 1e9)
    for digest in content.digests():
        assert hashlib.sha256(content.path(digest).read_bytes()).hexdigest() == digest
    for blob in models.blobs.list().blobs:
        assert content.path(blob.digest).stat().st_size == blob.size
    for repository in (home / "models" / "repositories").iterdir():
        assert sorted(str(p.relative_to(repository)) for p in repository.rglob("*.onnx")) == [
            "m/1/model.onnx",
            "m/2/model.onnx",
        ]


def die_at(line: int) -> None:
    """From now on count lines of the store's code; at number ``line`` this process is gone."""
    passed = itertools.count()

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if not frame.f_code.co_filename.startswith(STORE_CODE):
            return None
        if event == "line" and next(passed) == line:
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    sys.settrace(trace)


def run(scenario: str, home: Path, line: int) -> tuple[bool, int]:
    """A child that dies at ``line``: (whether it did, steps it had finished)."""
    answers, answered = os.pipe()
    child = os.fork()
    if not child:
        die_at(line)
        for step in SCENARIOS[scenario](home):
            step()
            os.write(answered, b".")
        os._exit(0)
    os.close(answered)
    _, status = os.waitpid(child, 0)
    with os.fdopen(answers, "rb") as pipe:
        finished = len(pipe.read())
    assert status in (0, signal.SIGKILL), status
    return status != 0, finished


def main(scenario: str, home: Path, every: int) -> None:
    reference = home / f"reference_{os.getpid()}"
    databases.renew(reference)
    wanted = [held(reference)]
    for step in SCENARIOS[scenario](reference):
        step()
        wanted.append(held(reference))
    for killed in itertools.count():
        place = home / f"crashed_{os.getpid()}"
        databases.renew(place)
        dead, finished = run(scenario, place, killed * every)
        assert held(place) in wanted[finished : finished + 2], (killed * every, finished)
        if not dead:
            assert finished == len(wanted) - 1
            for home_of in (reference, place):
                databases.drop(home_of)
            print(killed)
            return


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
