"""A store in a fresh file, a model store with a clock of its own, and ways to fill them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from amphitrite.controlplane.store.assets.model_store import ModelStore
from amphitrite.controlplane.store.content.blob_rows import Blob
from amphitrite.controlplane.store.content.content_store import Content
from amphitrite.controlplane.store.content.directory_content import ContentDirectory
from amphitrite.controlplane.store.sql.tables import metadata
from amphitrite.controlplane.store.state.database import SqlStore, open_store

from ... import postgresql, s3
from ...stores import new_store


class Clock:
    """Seconds since the epoch that pass only when told to."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now

    def pass_s(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["sqlite", "postgresql"])
def kind(request: pytest.FixtureRequest) -> str:
    """Of database."""
    return str(request.param)


@pytest.fixture
def database_url(kind: str, tmp_path: Path) -> Iterator[str]:
    """An empty database of each kind: where it is, with its password."""
    if kind == "sqlite":
        yield f"sqlite:///{tmp_path}/store.db"
    else:
        with postgresql.database() as url:
            yield url


#: Databases of PostgreSQL's with our tables, empty, that no test uses now: emptying one takes a
#: quarter of the time that making another does.
_SPARE: list[str] = []


@contextmanager
def _tables() -> Iterator[str]:
    """One of them, or a new one."""
    url = _SPARE.pop() if _SPARE else postgresql.server().create_database()
    yield url
    with suppress(psycopg.Error), postgresql.connect(url) as connection:
        connection.execute("SET lock_timeout = '5s'")
        for table in reversed(metadata.sorted_tables):
            if table.name != "schema_support":
                connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table.name)))
        _SPARE.append(url)  # Not where a test that failed holds on to it.


@contextmanager
def opened_store(kind: str, tmp_path: Path) -> Iterator[SqlStore]:
    """An empty store in a database of its own."""
    with ExitStack() as stack:
        opened = new_store(tmp_path / "store.db") if kind == "sqlite" else open_store(stack.enter_context(_tables()))
        stack.callback(opened.close)
        yield opened


@pytest.fixture
def store(kind: str, tmp_path: Path) -> Iterator[SqlStore]:
    with opened_store(kind, tmp_path) as opened:
        yield opened


@pytest.fixture
def content(
    request: pytest.FixtureRequest, kind: str, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> Content:
    """Where content is: a directory beside SQLite, an object store beside PostgreSQL, or what a
    test asks for."""
    place = getattr(request, "param", "directory" if kind == "sqlite" else "s3")
    if place == "s3":
        return s3.bucket(monkeypatch, clock).content(tmp_path / "models")
    return ContentDirectory(tmp_path / "models", clock)


@pytest.fixture
def directory(tmp_path: Path, clock: Clock) -> ContentDirectory:
    """The one place whose files can be looked at."""
    return ContentDirectory(tmp_path / "models", clock)


@pytest.fixture
def models(store: SqlStore, content: Content, tmp_path: Path, clock: Clock) -> ModelStore:
    return ModelStore(store.database, content, tmp_path / "models", clock=clock)


@pytest.fixture
def upload(models: ModelStore) -> Callable[..., Blob]:
    """upload(path, data, overwrite=False) -> Blob."""

    def put(path: str, data: bytes, *, overwrite: bool = False) -> Blob:
        with models.blobs.begin() as body:
            body.write(data)
            digest, size = body.finish()
        return models.blobs.put(path, digest, size, overwrite=overwrite)

    return put


@pytest.fixture
def register(models: ModelStore, upload: Callable[..., Blob], clock: Clock) -> Callable[..., Any]:
    """register(name, version, {relative path: data}, **document) -> (ModelVersion, created);
    uploads first."""

    def put(
        name: str, version: str, files: Mapping[str, bytes], *, prefix: str = "LocalUpload/aa/models", **document: Any
    ) -> Any:
        for path, data in files.items():
            upload(f"{prefix}/{path}", data, overwrite=True)
        address = f"azureml://datastores/workspaceblobstore/paths/{prefix}"
        flags = {name: document.pop(name) for name in ("is_anonymous", "is_archived") if name in document}
        values = {"name": name, "version": version, "path": address, "type": "triton_model", **document}
        return models.put_version(name, version, values, now=clock(), **flags)

    return put
