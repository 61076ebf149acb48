"""Garbage collection: what goes, and above all what stays."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from amphitrite.controlplane.store.assets.model_store import ModelStore
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
