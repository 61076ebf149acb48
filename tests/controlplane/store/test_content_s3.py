"""What only an object store has: parts, its own errors, addresses for others."""

from __future__ import annotations

import hashlib
import logging
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest

from amphitrite.controlplane.store.content.content_store import open_content
from amphitrite.controlplane.store.content.s3_content import open_bucket
from amphitrite.schemas.errors import Error

from ... import s3

MIB = 1024**2
DAY = 24 * 3600.0


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch, clock: Callable[[], float]) -> s3.Bucket:
    return s3.bucket(monkeypatch, clock)


def take_in(content: Any, data: bytes) -> str:
    with content.begin(10**9) as upload:
        upload.write(data)
        digest, size = upload.finish()
    assert size == len(data)
    return str(digest)


def test_objects_are_named_by_their_content(bucket: s3.Bucket, tmp_path: Path, clock: Any) -> None:
    content = open_content(bucket.url, tmp_path, clock)
    digest = take_in(content, b"x")
    with content.begin(9) as upload:
        upload.write(b"y")
        upload.finish_as_block("b1")
    assert bucket.names() == ["of/us/blocks/b1", f"of/us/sha256/{digest[:2]}/{digest}"]
    assert content.place == bucket.url
    bare = open_content(f"s3://{bucket.name}", tmp_path, clock)
    take_in(bare, b"x")
    assert f"sha256/{digest[:2]}/{digest}" in bucket.names() and list(bare.digests()) == [digest]


def test_a_large_file_goes_in_parts(bucket: s3.Bucket, tmp_path: Path, clock: Any) -> None:
    content = open_bucket(bucket.name, "", tmp_path, part_bytes=5 * MIB)
    data = bytes(range(256)) * (12 * MIB // 256)
    digest = take_in(content, data)
    assert digest == hashlib.sha256(data).hexdigest()
    key = f"sha256/{digest[:2]}/{digest}"
    assert bucket.client().head_object(Bucket=bucket.name, Key=key)["ETag"].endswith('-3"')
    assert b"".join(content.read(digest, 5 * MIB - 3, 5 * MIB + 3)) == data[5 * MIB - 3 : 5 * MIB + 3]
    take_in(content, data)
    content.lay_out(digest, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == data
    assert list((tmp_path / "uploads").iterdir()) == []


def test_damaged_content_is_put_again(bucket: s3.Bucket, tmp_path: Path, clock: Any) -> None:
    content = open_content(bucket.url, tmp_path, clock)
    digest = take_in(content, b"four")
    bucket.client().put_object(Bucket=bucket.name, Key=f"of/us/sha256/{digest[:2]}/{digest}", Body=b"3rd")
    assert take_in(content, b"four") == digest
    assert b"".join(content.read(digest, 0, 4)) == b"four"


def test_anybody_can_read_an_address(bucket: s3.Bucket, tmp_path: Path, clock: Any) -> None:
    content = open_content(bucket.url, tmp_path, clock)
    url = content.url(take_in(content, b"0123456789"), 600)
    assert url is not None and "X-Amz-Expires=600" in url and "secret-of-the-store" not in url
    assert httpx.get(url).content == b"0123456789"
    assert httpx.get(url, headers={"Range": "bytes=4-"}).content == b"456789"


def test_unfinished_transfers_and_unnamed_blocks_go_after_a_day(bucket: s3.Bucket, tmp_path: Path, clock: Any) -> None:
    content = open_content(bucket.url, tmp_path, clock)
    client = bucket.client()
    client.create_multipart_upload(Bucket=bucket.name, Key="of/us/sha256/aa/x")
    client.create_multipart_upload(Bucket=bucket.name, Key="of/others/x")
    for name in ("kept", "old"):
        client.put_object(Bucket=bucket.name, Key=f"of/us/blocks/{name}", Body=b"x")
    begun = client.list_multipart_uploads(Bucket=bucket.name)["Uploads"]
    young = min(one["Initiated"].timestamp() for one in begun)
    content.drop_unfinished(min(young, clock()) - 1, ())
    assert len(bucket.names()) == 2
    content.drop_unfinished(max(young, clock()) + DAY, {"kept"})
    assert bucket.names() == ["of/us/blocks/kept"]
    left = client.list_multipart_uploads(Bucket=bucket.name)["Uploads"]
    assert [one["Key"] for one in left] == ["of/others/x"]


def test_a_bucket_that_is_not_there(bucket: s3.Bucket, tmp_path: Path, clock: Any) -> None:
    with pytest.raises(Error, match="the object store refused the request") as caught:
        open_content("s3://nowhere-to-be-found/x", tmp_path, clock)
    assert (caught.value.code, caught.value.target) == ("RuntimeUnavailable", "s3://nowhere-to-be-found/x")
    assert "create the bucket" in str(caught.value.hint)


def test_a_bucket_that_went(bucket: s3.Bucket, tmp_path: Path, clock: Any) -> None:
    content = open_content(bucket.url, tmp_path, clock)
    bucket.client().delete_bucket(Bucket=bucket.name)
    with pytest.raises(Error, match="the object store refused the request") as caught:
        take_in(content, b"x")
    assert "create the bucket" in str(caught.value.hint)
    assert list((tmp_path / "uploads").iterdir()) == []


def test_without_credentials(bucket: s3.Bucket, tmp_path: Path, clock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    with pytest.raises(Error, match="Unable to locate credentials") as caught:
        open_content(bucket.url, tmp_path, clock)
    assert "AWS_ACCESS_KEY_ID" in str(caught.value.hint)


def test_a_store_that_does_not_answer_is_waited_for(
    bucket: s3.Bucket, tmp_path: Path, clock: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    content = open_content(bucket.url, tmp_path, clock)
    assert "does not answer" in caplog.text
    with pytest.raises(Error, match="the object store cannot be used") as caught:
        content.size("0" * 64)
    assert "AWS_ENDPOINT_URL" in str(caught.value.hint)
