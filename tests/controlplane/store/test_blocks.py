"""Blobs uploaded in blocks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import boto3
import pytest

from amphitrite.controlplane.store.assets.model_store import ModelStore
from amphitrite.controlplane.store.content.content_store import Content
from amphitrite.controlplane.store.content.directory_content import ContentDirectory
from amphitrite.schemas.errors import Error

Kept = Callable[[], int]


def put_block(models: ModelStore, block_id: str, data: bytes, path: str = "a", md5: bytes | None = None) -> None:
    upload = models.blobs.begin()
    upload.write(data)
    models.blobs.put_block(path, block_id, upload, expected_md5=md5)


@pytest.fixture
def kept(content: Content, tmp_path: Path) -> Callable[[], int]:
    """How many blocks there are; nothing else may be on the disk beside content."""

    def count() -> int:
        scratch = tmp_path / "models"
        assert [*(scratch / "temporary").iterdir(), *scratch.glob("uploads/*")] == []
        if isinstance(content, ContentDirectory):
            return len(list(content.blocks.iterdir()))
        bucket = content.place.split("/")[2]
        listed = boto3.client("s3").list_objects_v2(Bucket=bucket, Prefix="of/us/blocks/")
        return int(listed["KeyCount"])

    return count


def test_a_list_of_blocks_becomes_a_blob(models: ModelStore, kept: Kept) -> None:
    for block_id, data in (("1", b"one"), ("2", b"two"), ("x", b"unused")):
        put_block(models, block_id, data, md5=hashlib.md5(data).digest())
    blob = models.blobs.commit_blocks("a", ["2", "1", "2"], metadata={"k": "v"})
    assert b"".join(models.blobs.read(blob)) == b"twoonetwo"
    assert (blob.size, blob.metadata, blob.digest) == (9, {"k": "v"}, hashlib.sha256(b"twoonetwo").hexdigest())
    assert kept() == 0


def test_the_same_list_again_is_answered_again(models: ModelStore) -> None:
    put_block(models, "1", b"one")
    blob = models.blobs.commit_blocks("a", ["1"])
    assert models.blobs.commit_blocks("a", ["1"]) == blob


def test_a_block_sent_again_replaces_the_first(models: ModelStore, kept: Kept) -> None:
    put_block(models, "1", b"first")
    put_block(models, "1", b"second")
    assert kept() == 1
    assert b"".join(models.blobs.read(models.blobs.commit_blocks("a", ["1"]))) == b"second"


def test_blocks_belong_to_their_path(models: ModelStore, kept: Kept) -> None:
    put_block(models, "1", b"one", path="other")
    with pytest.raises(Error) as caught:
        models.blobs.commit_blocks("a", ["1"])
    assert caught.value.code == "InvalidBlockList"
    assert kept() == 1


def test_committing_over_a_blob_must_be_asked_for(models: ModelStore) -> None:
    put_block(models, "1", b"one")
    models.blobs.commit_blocks("a", ["1"])
    put_block(models, "2", b"two")
    with pytest.raises(Error) as caught:
        models.blobs.commit_blocks("a", ["2"], overwrite=False)
    assert caught.value.code == "BlobAlreadyExists"
    assert models.blobs.commit_blocks("a", ["2"]).size == 3


@pytest.mark.parametrize("block_id", ["", "x" * 256])
def test_a_bad_block_id_leaves_nothing(models: ModelStore, kept: Kept, block_id: str) -> None:
    with pytest.raises(Error) as caught:
        put_block(models, block_id, b"one")
    assert caught.value.code == "InvalidBlockId"
    assert kept() == 0


def test_a_damaged_block_leaves_nothing(models: ModelStore, kept: Kept) -> None:
    with pytest.raises(Error) as caught:
        put_block(models, "1", b"one", md5=b"\0" * 16)
    assert caught.value.code == "Md5Mismatch"
    assert kept() == 0
