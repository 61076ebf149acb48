"""Garbage collection: what goes, and above all what stays."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from amphitrite.controlplane.store.assets.model_store import ModelStore
from amphitrite.controlplane.store.content.directory_content import ContentDirectory
from amphitrite.controlplane.store.state.database import SqlStore
from amphitrite.schemas.errors import Error

DAY = 24 * 3600.0


def paths(models: ModelStore) -> list[str]:
    return [blob.path for blob in models.blobs.list().blobs]


def digests(models: ModelStore) -> set[str]:
    return set(models.blobs.content.digests())


def test_an_upload_that_nobody_registers_goes_after_a_day(models: ModelStore, upload: Any, clock: Any) -> None:
    upload("LocalUpload/aa/m/1/model.onnx", b"12345")
    clock.pass_s(DAY - 1)
    assert models.collect_garbage(clock(), frozenset()).paths == 0
    clock.pass_s(2)
    found = models.collect_garbage(clock(), frozenset())
    assert (found.paths, found.files, found.file_bytes) == (1, 1, 5)
    assert (paths(models), digests(models)) == ([], set())


def test_what_a_version_has_stays(models: ModelStore, register: Callable[..., Any], upload: Any, clock: Any) -> None:
    version, _ = register("m", "1", {"m/1/model.onnx": b"x"})
    upload("LocalUpload/aa/models/added later", b"y")
    root = models.repository(version.digest)
    clock.pass_s(30 * DAY)
    found = models.collect_garbage(clock(), frozenset())
    assert (found.paths, found.files, found.repositories) == (0, 0, 0)
    assert (root / "m/1/model.onnx").read_bytes() == b"x"


def test_an_upload_goes_as_a_whole_or_stays_as_a_whole(models: ModelStore, upload: Any, clock: Any) -> None:
    upload("LocalUpload/aa/m/1/model.onnx", b"x")
    upload("LocalUpload/bb/m/1/model.onnx", b"y")
    clock.pass_s(DAY + 1)
    models.blobs.set_metadata("LocalUpload/aa/m/1/model.onnx", {"upload_status": "completed"})
    upload("LocalUpload/bb/m/2/model.onnx", b"z")
    assert models.collect_garbage(clock(), frozenset()).paths == 0
    clock.pass_s(DAY + 1)
    assert models.collect_garbage(clock(), frozenset()).paths == 3


def test_content_uploaded_again_is_young_again(models: ModelStore, clock: Any) -> None:
    """Between ``finish`` and ``put`` nothing refers to the content."""
    with models.blobs.begin() as first:
        first.write(b"x")
        first.finish()
    clock.pass_s(DAY + 1)
    with models.blobs.begin() as second:
        second.write(b"x")
        digest, size = second.finish()
    assert models.collect_garbage(clock(), frozenset()).files == 0
    models.blobs.put("a", digest, size, overwrite=False)
    clock.pass_s(DAY - 1)
    models.collect_garbage(clock(), frozenset())
    assert b"".join(models.blobs.read(models.blobs.head("a"))) == b"x"


def test_overwritten_content_goes(models: ModelStore, upload: Any, clock: Any) -> None:
    upload("a", b"old")
    clock.pass_s(DAY + 1)
    kept = upload("a", b"new", overwrite=True)
    assert models.collect_garbage(clock(), frozenset()).files == 1
    assert digests(models) == {kept.digest}


@pytest.mark.parametrize("content", ["directory"], indirect=True)
def test_blocks_and_temporary_files_go_after_a_day(models: ModelStore, directory: Any, clock: Any) -> None:
    block, abandoned = models.blobs.begin(), models.blobs.begin()
    block.write(b"x")
    models.blobs.put_block("a", "1", block)
    files = directory
    for leftover in (files.blocks / "unnamed", files.temporary / "directory" / "deep"):
        leftover.mkdir(parents=True) if leftover.name == "deep" else leftover.write_bytes(b"x")
    for path in (*files.blocks.iterdir(), *files.temporary.iterdir()):
        os.utime(path, (clock(), clock()))
    models.collect_garbage(clock() + DAY - 1, frozenset())
    assert len([*files.blocks.iterdir(), *files.temporary.iterdir()]) == 4
    models.collect_garbage(clock() + DAY + 1, frozenset())
    assert [*files.blocks.iterdir(), *files.temporary.iterdir()] == []
    abandoned.abort()
    with pytest.raises(Error, match="not uploaded"):
        models.blobs.commit_blocks("a", ["1"])


def test_repositories_of_no_version_go_unless_in_use(models: ModelStore, tmp_path: Path, clock: Any) -> None:
    root = tmp_path / "models" / "repositories"
    for name in ("used", "unused"):
        (root / name / "m" / "1").mkdir(parents=True)
    assert models.collect_garbage(clock(), frozenset({"used"})).repositories == 1
    assert [path.name for path in root.iterdir()] == ["used"]


def test_a_dry_run_says_what_a_collection_deletes(
    models: ModelStore, register: Callable[..., Any], upload: Any, clock: Any, tmp_path: Path
) -> None:
    version, _ = register("m", "1", {"m/1/model.onnx": b"kept"})
    models.repository(version.digest)
    upload("LocalUpload/cc/m/1/model.onnx", b"12345")
    (tmp_path / "models" / "repositories" / "gone").mkdir()
    clock.pass_s(DAY + 1)
    upload("LocalUpload/bb/m/1/model.onnx", b"young")
    said = models.collect_garbage(clock(), frozenset(), dry_run=True)
    assert len(paths(models)) == 3 and len(digests(models)) == 3
    done = models.collect_garbage(clock(), frozenset())
    assert (said.paths, said.items) == (done.paths, done.items) == (1, done.items)
    assert sorted((item.kind, item.size) for item in done.items) == [("content", 5), ("repository", 0)]
    assert [(item.kind, item.name, item.size) for item in done.young] == [("upload", "LocalUpload/bb", 5)]
    assert models.collect_garbage(clock(), frozenset()).items == ()


def test_a_shorter_age_frees_earlier(models: ModelStore, upload: Any, clock: Any) -> None:
    upload("LocalUpload/aa/m/1/model.onnx", b"12345")
    clock.pass_s(3601)
    assert models.collect_garbage(clock(), frozenset()).files == 0
    assert models.collect_garbage(clock(), frozenset(), age_s=3600).file_bytes == 5


def test_the_files_of_a_deleted_version_are_garbage_unless_another_has_them(
    models: ModelStore, register: Callable[..., Any], clock: Any
) -> None:
    register("m", "1", {"m/1/model.onnx": b"both", "m/1/more": b"one"})
    register("m", "2", {"m/1/model.onnx": b"both"}, prefix="LocalUpload/bb/models")
    clock.pass_s(DAY + 1)
    assert models.delete_versions("M", "1") == 1
    assert models.delete_versions("m", "1") == 0
    assert models.collect_garbage(clock(), frozenset()).file_bytes == 3
    assert models.get_container("m").latest_version == "2"
    assert models.delete_versions("m", None) == 1
    with pytest.raises(Error, match="does not exist"):
        models.get_container("m")
    assert models.collect_garbage(clock(), frozenset()).file_bytes == 4


class Meanwhile(ContentDirectory):
    """``then`` happens between a collection's look at the facts and its deletions."""

    then: Callable[[], object] = staticmethod(lambda: None)

    def drop_unfinished(self, before: float, blocks: Collection[str]) -> None:
        super().drop_unfinished(before, blocks)
        self.then()


def test_what_is_registered_meanwhile_keeps_its_files_and_its_repository(
    store: SqlStore, tmp_path: Path, clock: Any
) -> None:
    content = Meanwhile(tmp_path / "models", clock)
    models = ModelStore(store.database, content, tmp_path / "models", clock=clock)
    path = "LocalUpload/aa/models/m/1/model.onnx"
    with models.blobs.begin() as body:
        body.write(b"x")
        models.blobs.put(path, *body.finish(), overwrite=False)
    document = {"type": "triton_model", "path": f"azureml://datastores/workspaceblobstore/paths/{path[:21]}"}
    version, _ = models.put_version("m", "1", document, now=clock())
    root = models.repository(version.digest)
    models.delete_versions("m", "1")
    clock.pass_s(DAY + 1)
    content.then = lambda: models.put_version("m", "2", document, now=clock())
    assert models.collect_garbage(clock(), frozenset()).items == ()
    assert (root / "m/1/model.onnx").read_bytes() == b"x"
    assert b"".join(models.blobs.read(models.blobs.head(path))) == b"x"
