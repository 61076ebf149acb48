"""Single rules of the blob store."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from amphitrite.controlplane.store.assets.model_store import ModelStore
from amphitrite.controlplane.store.content.blob_rows import Blob
from amphitrite.controlplane.store.content.blob_store import BlobStore, Limits
from amphitrite.controlplane.store.content.content_store import Content
from amphitrite.controlplane.store.content.directory_content import ContentDirectory
from amphitrite.controlplane.store.content.spool import disk_errors
from amphitrite.controlplane.store.state.database import SqlStore
from amphitrite.schemas.errors import Error

Upload = Callable[..., Blob]


def held(models: ModelStore, path: str, first: int = 0, last: int | None = None) -> bytes:
    return b"".join(models.blobs.read(models.blobs.head(path), first, last))


def left(models: ModelStore, scratch: Path) -> list[Any]:
    """All content, and every file on the disk that is not content."""
    digests = list(models.blobs.content.digests())
    return digests + [path for path in scratch.rglob("*") if path.is_file() and path.name not in digests]


def test_content_is_kept_once_by_its_digest(models: ModelStore, upload: Upload, tmp_path: Path) -> None:
    one, two = upload("a", b"same"), upload("b/c", b"same")
    digest = hashlib.sha256(b"same").hexdigest()
    assert (one.digest, one.size, one.etag) == (digest, 4, two.etag)
    assert left(models, tmp_path / "models") == [digest]


@pytest.mark.parametrize("content", ["directory"], indirect=True)
def test_files_are_read_only_in_private_directories(upload: Upload, directory: ContentDirectory) -> None:
    digest = upload("a", b"same").digest
    files = [path for path in directory.root.rglob("*") if path.is_file()]
    assert files == [directory.root / "blobs" / "sha256" / digest[:2] / digest]
    assert stat.S_IMODE(files[0].stat().st_mode) == 0o444
    assert {stat.S_IMODE(d.stat().st_mode) for d in directory.root.rglob("*") if d.is_dir()} == {0o700}


@pytest.mark.parametrize("overwrite", [False, True])
def test_overwriting_must_be_asked_for(models: ModelStore, upload: Upload, overwrite: bool) -> None:
    upload("a", b"one")
    models.blobs.set_metadata("a", {"upload_status": "completed"})
    if overwrite:
        assert upload("a", b"two", overwrite=True).metadata == {}
        assert held(models, "a") == b"two"
        return
    with pytest.raises(Error) as caught:
        upload("a", b"two")
    assert (caught.value.code, caught.value.status) == ("BlobAlreadyExists", 409)
    assert held(models, "a") == b"one"


def test_the_same_content_again_changes_nothing(models: ModelStore, upload: Upload) -> None:
    """Two clients send one file at once: both have what they wanted."""
    upload("a", b"one")
    before = models.blobs.set_metadata("a", {"upload_status": "completed"})
    assert upload("a", b"one") == before == models.blobs.head("a")


def test_a_wrong_md5_leaves_nothing(models: ModelStore, tmp_path: Path) -> None:
    upload = models.blobs.begin()
    upload.write(b"abc")
    with pytest.raises(Error) as caught:
        upload.finish(b"\0" * 16)
    assert caught.value.code == "Md5Mismatch"
    assert left(models, tmp_path / "models") == []


def test_a_right_md5_is_taken(models: ModelStore) -> None:
    with models.blobs.begin() as upload:
        upload.write(b"ab")
        upload.write(b"c")
        found = upload.finish(hashlib.md5(b"abc").digest())
    assert found == (hashlib.sha256(b"abc").hexdigest(), 3)


def test_an_unfinished_upload_leaves_nothing(models: ModelStore, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), models.blobs.begin() as upload:
        upload.write(b"abc")
        raise ZeroDivisionError
    assert left(models, tmp_path / "models") == []


def test_a_file_past_the_limit_leaves_nothing(store: SqlStore, content: Content, tmp_path: Path) -> None:
    blobs = BlobStore(store.database, content, Limits(file_bytes=5))
    upload = blobs.begin()
    upload.write(b"12345")
    with pytest.raises(Error, match=r"at least 6 bytes; at most 5 \(file_bytes\)") as caught:
        upload.write(b"6")
    assert caught.value.code == "RequestTooLarge"
    assert caught.value.hint and "ML_LIMIT_FILE_BYTES" in caught.value.hint
    assert not [path for path in (tmp_path / "models").rglob("*") if path.is_file()]


def test_a_full_disk_is_said(tmp_path: Path) -> None:
    full = open("/dev/full", "wb", buffering=0)  # noqa: SIM115
    with full, pytest.raises(Error, match="no space left for model files") as caught, disk_errors(tmp_path):
        full.write(b"x")
    assert (caught.value.code, caught.value.target) == ("RuntimeUnavailable", str(tmp_path))


@pytest.mark.parametrize(
    ("first", "last", "want"),
    [(0, None, b"0123456789"), (2, 4, b"234"), (8, 99, b"89"), (9, 9, b"9"), (9, None, b"9")],
)
def test_ranges(models: ModelStore, upload: Upload, first: int, last: int | None, want: bytes) -> None:
    upload("a", b"0123456789")
    assert held(models, "a", first, last) == want


@pytest.mark.parametrize(
    ("data", "first", "last"), [(b"0123", 4, None), (b"0123", 9, 12), (b"0123", 3, 2), (b"", 0, 3)]
)
def test_ranges_past_the_end(models: ModelStore, upload: Upload, data: bytes, first: int, last: int | None) -> None:
    upload("a", data)
    with pytest.raises(Error) as caught:
        models.blobs.read(models.blobs.head("a"), first, last)
    assert (caught.value.code, caught.value.status) == ("InvalidRange", 416)


def test_an_empty_blob_is_read_as_nothing(models: ModelStore, upload: Upload) -> None:
    upload("a", b"")
    assert held(models, "a") == b""


def test_a_reader_is_not_disturbed(models: ModelStore, upload: Upload) -> None:
    blob = upload("a", b"old")
    chunks = models.blobs.read(blob)
    assert models.blobs.content.discard_older(blob.digest, 9e9)
    assert b"".join(chunks) == b"old"
    with pytest.raises(Error, match="the content of the blob is missing"):
        models.blobs.read(blob)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("", "BadArgument"), ("a\0b", "BadArgument"), ("a\udcff", "BadArgument"),
        ("x" * 1025, "LimitExceeded"), ("x" * 1024, None), ("../../etc/passwd", None), ("/", None),
    ],
)  # fmt: skip
def test_paths(upload: Upload, path: str, code: str | None) -> None:
    if code is None:
        assert upload(path, b"x").path == path
        return
    with pytest.raises(Error) as caught:
        upload(path, b"x")
    assert caught.value.code == code


def test_metadata(models: ModelStore, upload: Upload) -> None:
    upload("a", b"x")
    assert models.blobs.set_metadata("a", {"name": "m"}).metadata == {"name": "m"}
    assert models.blobs.set_metadata("a", {"version": "1"}) == models.blobs.head("a")
    with pytest.raises(Error) as caught:
        models.blobs.set_metadata("a", {"k": "v" * 9000})
    assert caught.value.code == "MetadataTooLarge"
    for call in (models.blobs.head, lambda path: models.blobs.set_metadata(path, {})):
        with pytest.raises(Error) as caught:
            call("none")
        assert caught.value.code == "BlobNotFound"


def test_listing_folds_what_lies_deeper(models: ModelStore, upload: Upload) -> None:
    for path in ("m/a/1", "m/a/2", "m/a.txt", "m/b", "m/c/d/e", "n"):
        upload(path, b"x")
    found = models.blobs.list("m/", "/")
    assert [b.path for b in found.blobs] == ["m/a.txt", "m/b"]
    assert (found.prefixes, found.next_marker) == (("m/a/", "m/c/"), None)
    assert [b.path for b in models.blobs.list().blobs] == ["m/a.txt", "m/a/1", "m/a/2", "m/b", "m/c/d/e", "n"]


def test_a_path_never_gets_content_that_garbage_collection_has_just_dropped(models: ModelStore) -> None:
    with models.blobs.begin() as body:
        body.write(b"x")
        digest, size = body.finish()
    assert models.blobs.content.discard_older(digest, 9e9)
    with pytest.raises(Error, match="no longer exists") as caught:
        models.blobs.put("a", digest, size, overwrite=False)
    assert (caught.value.status, caught.value.hint) == (503, "upload it again")
