"""Uploads by somebody who means harm: each is refused with Azure Storage's code, and nothing of it
is left anywhere."""

from __future__ import annotations

import base64
import hashlib
import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest

from amphitrite.controlplane.store.content.blob_store import Limits
from amphitrite.controlplane.store.sql.tables import blobs as table

from .conftest import BLOBS, URI, WS, opened

XML = {"Accept": "application/xml", "x-ms-blob-type": "BlockBlob"}


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with opened(tmp_path_factory.mktemp("attacked") / "home") as world:
        world.services.blobs.limits = Limits(file_bytes=3_000_000)
        yield world


def send(world: Any, raw_path: bytes, content: Any = b"x", method: str = "PUT", **headers: str) -> httpx.Response:
    """A request whose path arrives byte by byte as it is given."""
    request = world.client.build_request(method, "/", content=content, headers={**XML, **headers})
    request.url = request.url.copy_with(raw_path=raw_path)
    answer: httpx.Response = world.client.send(request)
    return answer


def refused(answer: httpx.Response, status: int, code: str) -> None:
    assert (answer.status_code, answer.headers["x-ms-error-code"]) == (status, code), answer.text
    assert answer.headers["Content-Type"] == "application/xml"
    body = ElementTree.fromstring(answer.content)
    assert (body.tag, body.findtext("Code")) == ("Error", code)
    assert body.findtext("Message")


def files(world: Any) -> set[str]:
    """All files below the directory that the home is in, but those of the database and the logs."""
    root = world.services.settings.home.root
    found = {str(path.relative_to(root.parent)) for path in root.parent.rglob("*") if not path.is_dir()}
    return {name for name in found if ".db" not in name and "sqlite" not in name and "/logs/" not in name}


@contextmanager
def nothing_changes(world: Any) -> Iterator[None]:
    """No file more or less anywhere, and no blob."""
    before = files(world), [blob.path for blob in world.services.blobs.list().blobs]
    yield
    assert (files(world), [blob.path for blob in world.services.blobs.list().blobs]) == before


BAD_NAMES = [
    *(b"/etc/passwd", b"//etc/passwd", b"a//x", b"a/"),
    *(b"%2e%2e/x", b"%2E%2e%2fx", b"a/%2e%2e%2f%2e%2e%2fetc%2fpasswd", b"%2fetc%2fpasswd", b"a%2f%2fx"),
    *(b"%252e%252e/x", b"%25252e%25252e%25252fx", b"..%5cx", b"a%5c..%5c..%5cx", b"..%255cx", b"%2e%2e%5c%2e%2e"),
    *(b"%c0%ae%c0%ae/x", b"%c0%af..%c0%afx", b"%e0%80%ae%e0%80%ae/x", b"%ff", b"a%80"),
    *(b"a%00", b"a%00.onnx", b"%00", b"a%0db", b"a%7f", b"a%ef%bf%bf"),
    *(b"x" * 256, b"%f0%9f%98%80" * 64),
]


@pytest.mark.parametrize("name", BAD_NAMES, ids=repr)
def test_names_that_are_no_files(attacked: Any, name: bytes) -> None:
    with nothing_changes(attacked):
        refused(send(attacked, BLOBS.encode() + b"/" + name), 400, "InvalidResourceName")
        for query in (b"?comp=block&blockid=MQ%3D%3D", b"?comp=blocklist", b"?comp=metadata"):
            refused(send(attacked, BLOBS.encode() + b"/" + name + query), 400, "InvalidResourceName")
        read = send(attacked, BLOBS.encode() + b"/" + name, b"", "GET")
        assert read.status_code in (400, 404)


@pytest.mark.parametrize("length", [1025, 4096, 16_000])
def test_long_names(attacked: Any, length: int) -> None:
    with nothing_changes(attacked):
        name = ("x" * 200 + "/") * (length // 201) + "x" * (length % 201 or 1)
        refused(send(attacked, f"{BLOBS}/{name}".encode()), 400, "OutOfRangeInput")


def test_names_that_look_alike_are_different_files(attacked: Any) -> None:
    composed = "caf\u00e9"
    names = ["Model", "model", "MODEL", composed, unicodedata.normalize("NFD", composed), "a b", "a+b", "a%20b"]
    for name in names:
        url = f"{BLOBS}/LocalUpload/alike/m/{name.replace('%', '%25')}"
        assert attacked.client.put(url, content=name.encode(), headers=XML).status_code == 201
    for name in names:
        url = f"{BLOBS}/LocalUpload/alike/m/{name.replace('%', '%25')}"
        assert attacked.client.get(url).content == name.encode()
    body = {"properties": {"modelType": "custom_model", "modelUri": f"{URI}/LocalUpload/alike/m"}}
    answer = attacked.client.put(f"{WS}/models/alike/versions/1", json=body)
    assert answer.status_code == 201, answer.text
    root = attacked.services.models.repository(attacked.services.models.get_version("alike", "1").digest)
    assert {path.name: path.read_text() for path in root.iterdir()} == {name: name for name in names}


@pytest.mark.parametrize(
    "path",
    [
        *("../../../../etc", "LocalUpload/../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "/etc/passwd", "..", "."),
        *("%252e%252e", "LocalUpload/%00", "LocalUpload/none", "x" * 4096),
    ],
)
def test_models_of_files_that_were_not_uploaded(attacked: Any, path: str) -> None:
    with nothing_changes(attacked):
        for address in (f"{URI}/{path}", f"file:///{path}", f"https://test:8443{BLOBS}/{path}", path):
            body = {"properties": {"modelType": "triton_model", "modelUri": address}}
            answer = attacked.client.put(f"{WS}/models/stolen/versions/1", json=body)
            assert 400 <= answer.status_code < 500, answer.text


def test_a_wrong_md5(attacked: Any) -> None:
    wrong = base64.b64encode(hashlib.md5(b"y", usedforsecurity=False).digest()).decode()
    with nothing_changes(attacked):
        for query in ("", "?comp=block&blockid=MQ%3D%3D"):
            answer = attacked.client.put(f"{BLOBS}/damaged{query}", content=b"x", headers={**XML, "Content-MD5": wrong})
            refused(answer, 400, "Md5Mismatch")
            answer = attacked.client.put(f"{BLOBS}/damaged{query}", content=b"x", headers={**XML, "Content-MD5": "x"})
            refused(answer, 400, "InvalidMd5")


@pytest.mark.parametrize("headers", [{"Content-Length": "99999999999999999999"}, {"Content-Length": "3000001"}])
def test_a_body_that_says_itself_that_it_is_too_large(attacked: Any, headers: dict[str, str]) -> None:
    with nothing_changes(attacked):
        refused(send(attacked, f"{BLOBS}/large".encode(), b"x", **headers), 413, "RequestBodyTooLarge")


def test_a_body_that_turns_out_to_be_too_large(attacked: Any) -> None:
    with nothing_changes(attacked):
        for query in ("", "?comp=block&blockid=MQ%3D%3D"):
            pieces = (b"x" * 1_000_000 for _ in range(4))
            answer = attacked.client.put(f"{BLOBS}/large{query}", content=pieces, headers=XML)
            refused(answer, 413, "RequestBodyTooLarge")


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"x-ms-blob-type": "PageBlob"}, "InvalidHeaderValue"),
        ({"If-Match": '"x"'}, "ConditionHeadersNotSupported"),
        ({"If-None-Match": '"x"'}, "ConditionHeadersNotSupported"),
        ({"x-ms-lease-id": "x"}, "ConditionHeadersNotSupported"),
        ({"x-ms-meta-a-b": "x"}, "InvalidMetadata"),
        ({"x-ms-meta-a": "x" * 9000}, "MetadataTooLarge"),
        ({"Content-Encoding": "gzip"}, "FeatureNotSupported"),
    ],
)
def test_headers_that_are_not_honoured(attacked: Any, headers: dict[str, str], code: str) -> None:
    answer = attacked.client.put(f"{BLOBS}/headers", content=b"x", headers={**XML, **headers})
    refused(answer, 400, code)
    assert attacked.client.head(f"{BLOBS}/headers").status_code == 404


BOMB = b'<!DOCTYPE a [<!ENTITY a "aaaaa"><!ENTITY b "&a;&a;&a;&a;">]><BlockList><Latest>&b;</Latest></BlockList>'
FILE = b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><BlockList><Latest>&x;</Latest></BlockList>'


@pytest.mark.parametrize(
    ("body", "code"),
    [
        *((BOMB, "InvalidXmlDocument"), (FILE, "InvalidXmlDocument"), (b"\xff\xfe<\0", "InvalidXmlDocument")),
        *((b"<a>" * 200_000, "InvalidXmlDocument"), (b"<BlockList>" + b"<a>" * 100_000, "InvalidXmlDocument")),
        (b"<BlockList><Latest><Latest>x</Latest></Latest></BlockList>", "InvalidXmlDocument"),
        (b"<BlockList><Latest>&unknown;</Latest></BlockList>", "InvalidXmlDocument"),
        (b"<BlockList>" + b"<Latest>MQ==</Latest>" * 50_001 + b"</BlockList>", "BlockListTooLong"),
        (b"<BlockList><Latest>bm90aGluZw==</Latest></BlockList>", "InvalidBlockList"),
        (b" " * (8 * 1024 * 1024 + 1), "RequestBodyTooLarge"),
    ],
    ids=lambda value: value[:30] if isinstance(value, bytes) else value,
)
def test_block_lists(attacked: Any, body: bytes, code: str) -> None:
    with nothing_changes(attacked):
        answer = attacked.client.put(f"{BLOBS}/listed?comp=blocklist", content=body, headers=XML)
        refused(answer, 413 if code == "RequestBodyTooLarge" else 400, code)


def test_a_small_block_that_is_named_very_often(attacked: Any) -> None:
    """50,000 times 1 kB are more than a file may have: nothing is written to find that out."""
    block = f"{BLOBS}/swollen?comp=block&blockid=MQ%3D%3D"
    assert attacked.client.put(block, content=b"x" * 1000, headers=XML).status_code == 201
    body = b"<BlockList>" + b"<Latest>MQ==</Latest>" * 50_000 + b"</BlockList>"
    with nothing_changes(attacked):
        answer = attacked.client.put(f"{BLOBS}/swollen?comp=blocklist", content=body, headers=XML)
        refused(answer, 413, "RequestBodyTooLarge")


def test_too_many_blocks(attacked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amphitrite.controlplane.store.content.blocks._UNCOMMITTED_MAX", 3)
    sent = [attacked.client.put(f"{BLOBS}/many?comp=block&blockid={n}", content=b"x", headers=XML) for n in range(4)]
    assert [answer.status_code for answer in sent[:3]] == [201, 201, 201]
    refused(sent[3], 409, "BlockCountExceedsLimit")


def test_blocks_that_nobody_commits_go_after_a_day(attacked: Any) -> None:
    assert attacked.client.put(f"{BLOBS}/left?comp=block&blockid=a", content=b"left", headers=XML).status_code == 201
    blocks = attacked.services.settings.home.models / "blocks"
    assert list(blocks.iterdir())
    attacked.services.blobs._blocks.drop_expired(2e10)
    assert list(blocks.iterdir()) == []
    answer = attacked.client.put(
        f"{BLOBS}/left?comp=blocklist", content=b"<BlockList><Latest>a</Latest></BlockList>", headers=XML
    )
    refused(answer, 400, "InvalidBlockList")


@pytest.mark.parametrize("query", ["", "?comp=blocklist"])
def test_of_writers_that_want_to_be_the_first_one_is(attacked: Any, query: str) -> None:
    name, count = f"{BLOBS}/race{len(query)}", 6
    body = b"<BlockList><Latest>a</Latest></BlockList>"
    if query:
        assert attacked.client.put(f"{name}?comp=block&blockid=a", content=b"a", headers=XML).status_code == 201
    together, answers = threading.Barrier(count), []

    def write(number: int) -> None:
        together.wait()
        content = body if query else str(number).encode() * 100_000
        headers = {**XML, "If-None-Match": "*", "x-ms-meta-writer": str(number)}
        answers.append(attacked.client.put(f"{name}{query}", content=content, headers=headers))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    codes = sorted(answer.headers.get("x-ms-error-code", "") for answer in answers)
    won = attacked.client.head(name).headers["x-ms-meta-writer"]
    if query:
        # The same blocks once more are the same bytes: each of them has what it wanted.
        assert codes == [""] * count
        assert attacked.client.get(name).content == b"a"
    else:
        assert codes == ["", *["BlobAlreadyExists"] * (count - 1)]
        assert attacked.client.get(name).content == won.encode() * 100_000


def test_ten_thousand_files_are_more_than_a_model_has(attacked: Any) -> None:
    blobs = attacked.services.blobs
    with blobs.begin() as upload:
        upload.write(b"x")
        digest, size = upload.finish()
    with attacked.store.database.write() as connection:
        row = {"digest": digest, "size": size, "content_type": "x", "metadata": {}, "created_at": 0, "modified_at": 0}
        connection.execute(table.insert(), [{"path": f"LocalUpload/tiny/m/{n:05}", **row} for n in range(10_000)])
    body = {"properties": {"modelType": "custom_model", "modelUri": f"{URI}/LocalUpload/tiny/m"}}
    answer = attacked.client.put(f"{WS}/models/tiny/versions/1", json=body)
    assert (answer.status_code, answer.headers["x-ms-error-code"]) == (400, "LimitExceeded")
    names, marker = 0, ""
    while True:
        query = {"restype": "container", "comp": "list", "prefix": "LocalUpload/tiny/", "marker": marker}
        found = ElementTree.fromstring(attacked.client.get(BLOBS, params=query).content)
        names, marker = names + len(found.findall("Blobs/Blob")), found.findtext("NextMarker") or ""
        if not marker:
            break
    assert names == 10_000


@pytest.mark.parametrize("where", ["blobs", "blocks"])
def test_a_link_in_the_store_leads_nowhere(world: Any, tmp_path: Path, where: str) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    query = "?comp=block&blockid=a" if where == "blocks" else ""
    assert world.client.put(f"{BLOBS}/a{query}", content=b"public", headers=XML).status_code == 201
    held = [path for path in (world.services.settings.home.models / where).rglob("*") if path.is_file()]
    held[0].unlink()
    held[0].symlink_to(secret)
    if where == "blobs":
        answer = world.client.get(f"{BLOBS}/a")
    else:
        body = b"<BlockList><Latest>a</Latest></BlockList>"
        answer = world.client.put(f"{BLOBS}/a?comp=blocklist", content=body, headers=XML)
    assert answer.status_code in (409, 500)
    assert b"secret" not in answer.content
    assert secret.read_bytes() == b"secret"
