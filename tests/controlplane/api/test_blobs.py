"""The blob routes: what Azure's SDK sends for a model's files, byte for byte back."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

import pytest

ROOT = "/storage/local.blob.core.windows.net/azureml-blobstore"
BLOB = f"{ROOT}/LocalUpload/abc/models/model_1/1/model.onnx"
CONTENT = bytes(range(256)) * 4096
BLOCK_BLOB = {"x-ms-blob-type": "BlockBlob", "If-None-Match": "*"}


def md5(data: bytes) -> dict[str, str]:
    return {"Content-MD5": base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()}


def test_a_blob_comes_back_as_it_was_sent(world: Any) -> None:
    sent = world.client.put(BLOB, content=CONTENT, headers={**BLOCK_BLOB, **md5(CONTENT), "x-ms-meta-a": "b"})
    assert (sent.status_code, "content-md5" in sent.headers) == (201, False)
    head = world.client.head(BLOB)
    assert (head.status_code, head.headers["Content-Length"], head.content) == (200, str(len(CONTENT)), b"")
    assert (head.headers["ETag"], head.headers["x-ms-meta-a"]) == (sent.headers["ETag"], "b")
    assert head.headers["x-ms-blob-type"] == "BlockBlob"
    got = world.client.get(BLOB)
    assert (got.status_code, got.content) == (200, CONTENT)


def test_a_blob_that_exists_is_overwritten_only_without_if_none_match(world: Any) -> None:
    assert world.client.put(BLOB, content=b"one", headers=BLOCK_BLOB).status_code == 201
    again = world.client.put(BLOB, content=b"two", headers=BLOCK_BLOB)
    assert (again.status_code, again.headers["x-ms-error-code"]) == (409, "BlobAlreadyExists")
    assert world.client.put(BLOB, content=b"two", headers={"x-ms-blob-type": "BlockBlob"}).status_code == 201
    assert world.client.get(BLOB).content == b"two"


def test_a_blob_that_exists_with_the_same_bytes_is_answered_as_stored(world: Any) -> None:
    first = world.client.put(BLOB, content=CONTENT, headers=BLOCK_BLOB)
    again = world.client.put(BLOB, content=CONTENT, headers={**BLOCK_BLOB, **md5(CONTENT)})
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.headers["ETag"] == first.headers["ETag"]
    # In blocks, as the SDK sends a large file: the same bytes, and others of the same length.
    for part, status in ((CONTENT, 201), (CONTENT[::-1], 409)):
        assert world.client.put(BLOB, params={"comp": "block", "blockid": "MQ=="}, content=part).status_code == 201
        body = b"<BlockList><Latest>MQ==</Latest></BlockList>"
        answer = world.client.put(BLOB, params={"comp": "blocklist"}, content=body, headers=BLOCK_BLOB)
        assert answer.status_code == status, answer.text
    assert world.client.get(BLOB).content == CONTENT


def test_a_damaged_body_is_refused_and_not_stored(world: Any) -> None:
    answer = world.client.put(BLOB, content=b"one", headers={**BLOCK_BLOB, **md5(b"two")})
    assert (answer.status_code, answer.headers["x-ms-error-code"]) == (400, "Md5Mismatch")
    assert world.client.head(BLOB).status_code == 404


@pytest.mark.parametrize("value", ["AAAA", "not base64", "\u00e9"])
def test_what_is_no_md5_is_400(world: Any, value: str) -> None:
    answer = world.client.put(BLOB, content=b"one", headers={**BLOCK_BLOB, "Content-MD5": value.encode("latin-1")})
    assert (answer.status_code, answer.headers["x-ms-error-code"]) == (400, "InvalidMd5")


@pytest.mark.parametrize(
    ("wanted", "status", "first", "last"),
    [
        ("bytes=0-9", 206, 0, 9),
        ("bytes=5-", 206, 5, 99),
        ("bytes=90-33554431", 206, 90, 99),
        ("bytes=100-", 416, 0, 0),
        ("bytes=9-5", 416, 0, 0),
        ("bytes=-5", 416, 0, 0),
        ("lines=1-2", 416, 0, 0),
    ],
)
@pytest.mark.parametrize("header", ["x-ms-range", "Range"])
def test_ranges(world: Any, header: str, wanted: str, status: int, first: int, last: int) -> None:
    data = bytes(range(100))
    assert world.client.put(BLOB, content=data, headers=BLOCK_BLOB).status_code == 201
    answer = world.client.get(BLOB, headers={header: wanted})
    assert answer.status_code == status
    if status == 206:
        assert answer.content == data[first : last + 1]
        assert answer.headers["Content-Range"] == f"bytes {first}-{last}/100"
    else:
        assert answer.headers["x-ms-error-code"] == "InvalidRange"


def test_if_match_of_another_content_is_412(world: Any) -> None:
    etag = world.client.put(BLOB, content=b"one", headers=BLOCK_BLOB).headers["ETag"]
    assert world.client.get(BLOB, headers={"If-Match": etag}).status_code == 200
    assert world.client.get(BLOB, headers={"If-Match": '"0xOTHER"'}).status_code == 412


def test_blocks_become_a_blob_in_the_lists_order(world: Any) -> None:
    ids = [base64.b64encode(f"{number:06}".encode()).decode() for number in (2, 1)]
    for number, block_id in enumerate(ids):
        part = bytes([number]) * 5000
        query = {"comp": "block", "blockid": block_id}
        assert world.client.put(BLOB, params=query, content=part, headers=md5(part)).status_code == 201
    listed = "".join(f"<Latest>{block_id}</Latest>" for block_id in ids)
    body = f'<?xml version="1.0" encoding="utf-8"?><BlockList>{listed}</BlockList>'.encode()
    answer = world.client.put(BLOB, params={"comp": "blocklist"}, content=body, headers={"If-None-Match": "*"})
    assert answer.status_code == 201, answer.text
    assert world.client.get(BLOB).content == b"\0" * 5000 + b"\1" * 5000


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<a>",
        b"<Other/>",
        b"<!DOCTYPE a><BlockList/>",
        b"\xff",
        b"<?xml version='1.0' encoding='nope'?><a/>",
        "<?xml version='1.0' encoding='utf-16'?><!DOCTYPE a><BlockList/>".encode("utf-16"),
    ],
)
def test_what_is_no_block_list_is_400(world: Any, body: bytes) -> None:
    assert world.client.put(BLOB, params={"comp": "blocklist"}, content=body).status_code == 400


@pytest.mark.parametrize("name", ["1a", "a.b", "a-b"])
def test_metadata_that_a_list_could_not_show_is_refused(world: Any, name: str) -> None:
    answer = world.client.put(BLOB, content=b"one", headers={**BLOCK_BLOB, f"x-ms-meta-{name}": "v"})
    assert answer.status_code == 400


def test_metadata_is_replaced(world: Any) -> None:
    headers: Mapping[str, str] = {"x-ms-meta-upload_status": "completed", "x-ms-meta-name": "m"}
    assert world.client.put(BLOB, params={"comp": "metadata"}, headers=headers).status_code == 404
    world.client.put(BLOB, content=b"one", headers=BLOCK_BLOB)
    assert world.client.put(BLOB, params={"comp": "metadata"}, headers=headers).status_code == 200
    head = world.client.head(BLOB).headers
    assert (head["x-ms-meta-upload_status"], head["x-ms-meta-name"]) == ("completed", "m")


def test_the_mark_of_a_complete_upload_goes_while_a_file_of_it_is_damaged(world: Any) -> None:
    """A client that sees the mark does not send the files again, which would repair them."""
    mark, other = f"{ROOT}/LocalUpload/abc/m/a", f"{ROOT}/LocalUpload/abc/m/b"
    for url in (mark, other):
        world.client.put(url, content=url.encode(), headers=BLOCK_BLOB)
    complete: Mapping[str, str] = {"x-ms-meta-upload_status": "completed", "x-ms-meta-name": "m"}
    world.client.put(mark, params={"comp": "metadata"}, headers=complete)
    assert world.client.head(mark).headers["x-ms-meta-upload_status"] == "completed"
    stored = world.services.blobs.content.path(hashlib.sha256(other.encode()).hexdigest())
    stored.chmod(0o644)
    stored.write_bytes(other.encode()[::-1])
    head = world.client.head(mark).headers
    assert "x-ms-meta-upload_status" not in head and head["x-ms-meta-name"] == "m"
    refused = world.client.get(other, headers={"x-ms-range": "bytes=0-3"})
    assert (refused.status_code, refused.headers["x-ms-error-code"]) == (500, "DamagedContent")
    assert world.client.put(other, content=other.encode(), headers=BLOCK_BLOB).status_code == 201
    assert world.client.head(mark).headers["x-ms-meta-upload_status"] == "completed"
    assert world.client.get(other).content == other.encode()


def test_the_list_is_xml_with_prefixes_and_metadata(world: Any) -> None:
    headers = {**BLOCK_BLOB, "x-ms-meta-name": "m"}
    for path in ("LocalUpload/abc/a", "LocalUpload/abc/d/b", "LocalUpload/x&y"):
        assert world.client.put(f"{ROOT}/{path}", content=b"one", headers=headers).status_code == 201
    query = {"restype": "container", "comp": "list", "prefix": "LocalUpload/abc/", "delimiter": "/"}
    found = ElementTree.fromstring(world.client.get(ROOT, params=query).content)
    assert [name.text for name in found.iterfind("Blobs/Blob/Name")] == ["LocalUpload/abc/a"]
    assert [name.text for name in found.iterfind("Blobs/BlobPrefix/Name")] == ["LocalUpload/abc/d/"]
    query = {"restype": "container", "comp": "list", "include": "metadata", "maxresults": "2"}
    found = ElementTree.fromstring(world.client.get(ROOT, params=query).content)
    assert [value.text for value in found.iterfind("Blobs/Blob/Metadata/name")] == ["m", "m"]
    query["marker"] = found.findtext("NextMarker") or ""
    found = ElementTree.fromstring(world.client.get(ROOT, params=query).content)
    assert [name.text for name in found.iterfind("Blobs/Blob/Name")] == ["LocalUpload/x&y"]


def test_the_datastore_leads_to_these_routes(world: Any) -> None:
    workspace = "/subscriptions/local/resourceGroups/local/providers/Microsoft.MachineLearningServices/workspaces/local"
    shown = world.client.get(f"{workspace}/datastores/workspaceblobstore").json()["properties"]
    assert shown["credentials"] == {"credentialsType": "None"}
    url = f"https://{shown['accountName']}.blob.core.windows.net/{shown['containerName']}"
    assert url == f"https://test:8443{ROOT}"
