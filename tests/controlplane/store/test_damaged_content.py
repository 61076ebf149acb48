"""A byte of stored content changes: it is never served as if it were good, and an upload of the
same file repairs it."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest

from amphitrite.controlplane.store.assets.model_store import ModelStore
from amphitrite.controlplane.store.content.content_store import Content
from amphitrite.controlplane.store.content.directory_content import ContentDirectory
from amphitrite.controlplane.store.content.manifests import File
from amphitrite.controlplane.store.content.repository_directories import materialise
from amphitrite.controlplane.store.content.spool import Scratch
from amphitrite.controlplane.store.content.verified_files import VerifiedFiles
from amphitrite.schemas.errors import Error

DATA = bytes(range(256)) * 40
DIGEST = hashlib.sha256(DATA).hexdigest()
directories = pytest.mark.parametrize("content", ["directory"], indirect=True)
both = pytest.mark.parametrize("content", ["directory", "s3"], indirect=True)


def flip(path: Path, at: int = 5000) -> None:
    """Changes a byte. Size, mode and modification time stay."""
    status = path.stat()
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(data)
    path.chmod(status.st_mode)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def damage(content: Content, digest: str) -> None:
    if isinstance(content, ContentDirectory):
        flip(content.path(digest))
    else:
        bucket, key = content.place.split("/")[2], f"of/us/sha256/{digest[:2]}/{digest}"
        boto3.client("s3").put_object(Bucket=bucket, Key=key, Body=DATA[::-1])


@directories
@pytest.mark.parametrize(("first", "last"), [(0, None), (0, 99), (6000, 6099)])
def test_no_byte_of_a_damaged_file_is_served(models: ModelStore, upload: Any, first: int, last: int | None) -> None:
    blob = upload("LocalUpload/a/f", DATA)
    assert b"".join(models.blobs.read(blob, first, last))
    damage(models.blobs.content, DIGEST)
    with pytest.raises(Error, match="is damaged: its SHA-256 is not") as caught:
        models.blobs.read(blob, first, last)
    assert caught.value.code == "DamagedContent" and "upload the same files again" in str(caught.value.hint)


@both
@pytest.mark.parametrize("in_blocks", [False, True], ids=["whole", "blocks"])
def test_an_upload_of_the_same_file_repairs_it(models: ModelStore, upload: Any, in_blocks: bool) -> None:
    content = models.blobs.content
    blob = upload("LocalUpload/a/f", DATA)
    assert content.intact(DIGEST) and models.blobs.upload_is_intact(blob.path)
    damage(content, DIGEST)
    assert not content.intact(DIGEST) and not models.blobs.upload_is_intact(blob.path)
    if in_blocks:
        with models.blobs.begin() as body:
            body.write(DATA)
            models.blobs.put_block(blob.path, "1", body)
        models.blobs.commit_blocks(blob.path, ["1"], overwrite=False)
    else:
        upload("LocalUpload/a/f", DATA)
    assert content.intact(DIGEST) and models.blobs.upload_is_intact(blob.path)
    assert b"".join(models.blobs.read(blob)) == DATA


@both
def test_a_lost_file_makes_its_upload_incomplete(models: ModelStore, upload: Any) -> None:
    for name in ("f", "g"):
        upload(f"LocalUpload/a/m/{name}", name.encode())
    assert models.blobs.upload_is_intact("LocalUpload/a/m/g")
    models.blobs.content.discard_older(hashlib.sha256(b"f").hexdigest(), 9e9)
    assert not models.blobs.upload_is_intact("LocalUpload/a/m/g")


@both
def test_a_damaged_model_is_not_laid_out_until_it_is_uploaded_again(
    models: ModelStore, register: Callable[..., Any], upload: Any
) -> None:
    version, _ = register("m", "1", {"m/1/model.onnx": DATA})
    damage(models.blobs.content, DIGEST)
    with pytest.raises(Error) as caught:
        models.repository(version.digest)
    assert caught.value.code == "DamagedContent"
    upload("again", DATA)
    assert (models.repository(version.digest) / "m/1/model.onnx").read_bytes() == DATA


@both
@pytest.mark.parametrize("how", ["flipped", "removed"])
def test_a_damaged_directory_is_made_again(
    models: ModelStore, register: Callable[..., Any], upload: Any, how: str
) -> None:
    """Where the file is a hard link, the store's own file has the damage too."""
    version, _ = register("m", "1", {"m/1/model.onnx": DATA, "m/config.pbtxt": b""})
    laid_out = models.repository(version.digest) / "m/1/model.onnx"
    if how == "removed":
        laid_out.unlink()
    else:
        flip(laid_out)
        upload("again", DATA)
    assert (models.repository(version.digest) / "m/1/model.onnx").read_bytes() == DATA
    assert sorted(path.name for path in laid_out.parents[2].rglob("*")) == ["1", "config.pbtxt", "m", "model.onnx"]
    assert not list((laid_out.parents[4] / "temporary").iterdir())


@directories
def test_a_damaged_copy_is_made_again(models: ModelStore, upload: Any, tmp_path: Path, clock: Any) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise OSError(errno.EXDEV, "another file system")

    upload("f", DATA)
    content, scratch = ContentDirectory(tmp_path / "models", clock, link=refuse), Scratch(tmp_path / "elsewhere")
    manifest = [File("m/1/model.onnx", DIGEST, len(DATA), "f")]
    laid_out = materialise(content, scratch, "0" * 64, manifest) / "m/1/model.onnx"
    with laid_out.open("rb") as in_use:
        flip(laid_out)
        materialise(content, scratch, "0" * 64, manifest)
        assert laid_out.read_bytes() == DATA
        assert in_use.read() != DATA
    assert content.intact(DIGEST)


def test_a_file_that_did_not_change_is_not_hashed_again(tmp_path: Path) -> None:
    """What was noted for it counts, even if it is wrong."""
    file, files = tmp_path / "f", VerifiedFiles()
    file.write_bytes(b"one")
    digest = hashlib.sha256(b"one").hexdigest()
    files.remember(file, DIGEST)
    assert files.path_holds(file, DIGEST) and not files.path_holds(file, digest)
    os.utime(file)
    assert files.path_holds(file, digest) and not files.path_holds(file, DIGEST)
    assert not files.path_holds(tmp_path / "none", digest)


def test_what_is_known_about_files_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amphitrite.controlplane.store.content.verified_files._KNOWN_MAX", 2)
    files = VerifiedFiles()
    paths = [tmp_path / name for name in "abc"]
    for path in paths:
        path.write_bytes(b"x")
        files.remember(path, DIGEST)
    assert [files.path_holds(path, DIGEST) for path in paths] == [False, True, True]
