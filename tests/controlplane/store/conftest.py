"""A store in a fresh file, a model store with a clock of its own, and ways to fill them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from amphitrite.controlplane.store.blobs import Blob
from amphitrite.controlplane.store.database import SqlStore, open_store
from amphitrite.controlplane.store.models import ModelStore


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


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    opened = open_store(tmp_path / "store.db")
    yield opened
    opened.close()


@pytest.fixture
def models(store: SqlStore, tmp_path: Path, clock: Clock) -> ModelStore:
    return ModelStore(store.database, tmp_path / "models", clock=clock)


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
    """register(name, version, {relative path: data}, **document) -> (ModelVersion, created); uploads first."""

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
