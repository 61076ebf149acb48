"""Code assets over HTTP: uploads to signed addresses, versions, and what a signature does not
open."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from amphitrite.controlplane.core.storage.garbage import AGE_S

from .conftest import BLOBS, BLOCK_BLOB, URI, WS, opened

NOBODY = {"Authorization": ""}
SCRIPT = b"def init(): pass\ndef run(x): return x\n"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One for all tests of this file, each of which has names of its own."""
    with opened(tmp_path_factory.mktemp("codes") / "home") as world:
        yield world


def started(world: Any, name: str) -> tuple[str, str]:
    """A pending upload: its address without and with the signature."""
    url = f"{WS}/codes/{name}/versions/1/startPendingUpload"
    answer = world.client.post(url, json={"pendingUploadType": "TemporaryBlobReference"})
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert (body["pendingUploadType"], uuid.UUID(body["pendingUploadId"]).version) == ("TemporaryBlobReference", 4)
    reference = body["blobReferenceForConsumption"]
    assert reference["credential"]["credentialType"] == "SAS"
    return reference["blobUri"], reference["credential"]["sasUri"]


def at(signed: str, path: str) -> str:
    address = urlsplit(signed)
    return f"{address.path}{path}?{address.query}"


def send(world: Any, url: str, content: bytes = SCRIPT) -> Any:
    return world.client.put(url, content=content, headers={**BLOCK_BLOB, **NOBODY})


def registered(world: Any, name: str, uri: str, hash: str = "b3b3", **more: Any) -> Any:
    properties = {"hash_sha256": hash, "hash_version": 202208}
    body = {"properties": {"codeUri": uri, "isAnonymous": True, "properties": properties, **more}}
    return world.client.put(f"{WS}/codes/{name}/versions/1", json=body)


def test_an_upload_by_its_address_alone_becomes_a_version(world: Any) -> None:
    """(c) 6: as the SDK does it, without Authorization."""
    address, signed = started(world, "first")
    file = at(signed, "/src/score.py")
    assert world.client.head(file, headers=NOBODY).status_code == 404
    assert send(world, file).status_code == 201
    marks = {"x-ms-meta-upload_status": "completed", **NOBODY}
    assert world.client.put(f"{file}&comp=metadata", headers=marks).status_code == 200
    assert world.client.head(file, headers=NOBODY).headers["x-ms-meta-upload_status"] == "completed"
    assert world.client.get(file, headers=NOBODY).content == SCRIPT
    found = world.client.get(f"{WS}/codes/other/versions?hash=first&hashVersion=202208").json()
    assert found == {"value": []}
    answer = registered(world, "first", f"{address}/src", "first")
    assert answer.status_code == 201
    shown = answer.json()
    assert shown["id"] == f"{WS}/codes/first/versions/1"
    assert (shown["properties"]["codeUri"], shown["properties"]["isAnonymous"]) == (f"{address}/src", True)
    assert shown["systemData"]["createdAt"]
    assert world.client.get(shown["id"]).json() == shown
    # The next time the SDK asks by another name, and takes what is there.
    found = world.client.get(f"{WS}/codes/other/versions?hash=first&hashVersion=202208").json()
    assert [item["id"] for item in found["value"]] == [shown["id"]]


def test_large_files_come_in_blocks(world: Any) -> None:
    _, signed = started(world, "blocks")
    file = at(signed, "/src/data.bin")
    for block in ("YQ==", "Yg=="):
        assert send(world, f"{file}&comp=block&blockid={block}", block.encode()).status_code == 201
    names = "<BlockList><Latest>Yg==</Latest><Latest>YQ==</Latest></BlockList>"
    assert send(world, f"{file}&comp=blocklist", names.encode()).status_code == 201
    assert world.client.get(file, headers=NOBODY).content == b"Yg==YQ=="


def test_a_registered_versions_files_never_change(world: Any) -> None:
    address, signed = started(world, "kept")
    send(world, at(signed, "/src/score.py"))
    assert registered(world, "kept", f"{address}/src").status_code == 201
    for path in ("/src/score.py", "/src/more.py"):
        assert send(world, at(signed, path), b"other").json()["error"]["code"] == "Conflict"
    assert registered(world, "kept", f"{address}/src", description="again").status_code == 200
    same, signed = started(world, "kept")
    send(world, at(signed, "/src/score.py"))
    assert registered(world, "kept", f"{same}/src").json()["properties"]["codeUri"] == f"{address}/src"
    other, signed = started(world, "kept")
    send(world, at(signed, "/src/score.py"), b"other")
    answer = registered(world, "kept", f"{other}/src")
    assert (answer.status_code, answer.json()["error"]["message"]) == (400, "Asset paths cannot be updated.")


def test_a_signature_opens_its_upload_and_nothing_else(world: Any) -> None:
    address, signed = started(world, "scope")
    other, _ = started(world, "scope")
    query = urlsplit(signed).query
    path, elsewhere = urlsplit(address).path, urlsplit(other).path
    longer = query.replace(parse_qs(query)["se"][0].replace(":", "%3A"), "2099-01-01T00%3A00%3A00Z")
    assert longer != query
    refused = {
        f"{elsewhere}/a?{query}": 401,
        f"{path}/a?{longer}": 401,
        f"{path}/a?{query.replace('sp=rcwl', 'sp=rcwdl')}": 401,
        f"{path}/a?sig=": 401,
        f"{path}/a?sig=%FF": 401,
        f"{path}/a?{query.partition('sig=')[0]}": 401,
        f"{path}/a": 401,
        f"{BLOBS}/a?{query}": 401,
        f"{BLOBS}?restype=container&comp=list&{query}": 401,
        f"{path.replace('/local.', '/other.')}/a?{query}": 404,
        f"{path}x/a?{query}": 401,
        f"{WS}?{query}": 401,
    }
    for url, status in refused.items():
        answer = world.client.get(url, headers=NOBODY)
        assert answer.status_code == status, (url, answer.text)
    assert world.client.get(f"{path}/%2E%2E/{BLOBS.split('/')[-1]}/a?{query}", headers=NOBODY).status_code == 404
    assert send(world, f"{path}/?{query}").status_code == 400
    world.now[0] += 3600
    answer = send(world, f"{path}/a?{query}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "AuthorizationFailed")


def test_the_datastores_secret_is_a_signature_for_its_container(world: Any) -> None:
    """Route 4: what a client gets that wants one in place of its bearer token."""
    _, signed = started(world, "secret")
    url = f"{WS}/datastores/workspaceblobstore/listSecrets"
    secret = world.client.post(url, json={"expirableSecret": True, "expireAfterHours": 2}).json()
    assert secret["secretsType"] == "Sas"
    token = secret["sasToken"]
    assert send(world, f"{BLOBS}/a?{token}").status_code == 201
    assert world.client.get(f"{BLOBS}/a?{token}", headers=NOBODY).content == SCRIPT
    assert world.client.get(f"{BLOBS}?restype=container&comp=list&{token}", headers=NOBODY).status_code == 200
    # Clients before 1.35 read code with it, too: one account has one secret. It writes nothing
    # there.
    code = urlsplit(signed).path
    assert send(world, at(signed, "/src/score.py")).status_code == 201
    assert world.client.get(f"{code}/src/score.py?{token}", headers=NOBODY).content == SCRIPT
    assert send(world, f"{code}/src/other.py?{token}").status_code == 401
    world.now[0] += 7200
    assert world.client.get(f"{BLOBS}/a?{token}", headers=NOBODY).status_code == 403


def test_the_owner_lists_and_reads_without_a_signature(world: Any) -> None:
    """The SDK's download of a code asset goes to the container with its bearer token."""
    address, signed = started(world, "listed")
    for name in ("src/a.py", "src/b/c.py", "other"):
        send(world, at(signed, f"/{name}"))
    path = urlsplit(address).path
    listing = world.client.get(f"{path}?restype=container&comp=list&prefix=src").text
    assert "<Name>src/a.py</Name>" in listing and "<Name>src/b/c.py</Name>" in listing and "other" not in listing
    folded = world.client.get(f"{path}?restype=container&comp=list&prefix=src/&delimiter=/").text
    assert "<BlobPrefix><Name>src/b/</Name></BlobPrefix>" in folded
    first = world.client.get(f"{path}?restype=container&comp=list&maxresults=1").text
    assert "<NextMarker>src/a.py</NextMarker>" in first and "<Name>other</Name>" in first
    assert world.client.get(f"{path}/src/a.py").content == SCRIPT


@pytest.mark.parametrize(
    ("uri", "status", "says"),
    [
        ("https://example.org/elsewhere", 400, "cannot be registered from this URL"),
        ("https://test:8443/storage/local/codes-" + "0" * 32, 400, "there are no files below"),
        ("https://test:8443/storage/local/codes-short/src", 404, "does not exist"),
        (f"{URI}/LocalUpload/none", 400, "there are no files below"),
    ],
)
def test_what_cannot_be_registered(world: Any, uri: str, status: int, says: str) -> None:
    answer = registered(world, "none", uri)
    assert answer.status_code == status and says in answer.text
    assert world.client.get(f"{WS}/codes/none/versions/1").status_code == 404


def test_code_in_the_datastore_is_registered_too(world: Any) -> None:
    assert registered(world, "stored", world.upload("stored"), "stored").status_code == 201


def test_another_kind_of_upload_is_refused(world: Any) -> None:
    url = f"{WS}/codes/kind/versions/1/startPendingUpload"
    answer = world.client.post(url, json={"pendingUploadType": "Other"})
    assert (answer.status_code, answer.json()["error"]["target"]) == (400, "pendingUploadType")


def test_what_nobody_registers_goes_and_what_a_version_has_stays(tmp_path: Any) -> None:
    with opened(tmp_path / "home") as world:
        stored, left = started(world, "stored"), started(world, "left")
        for _, signed in (stored, left):
            send(world, at(signed, "/src/score.py"), signed.encode())
        assert registered(world, "stored", f"{stored[0]}/src").status_code == 201
        uploaded = world.services.models.list_models("All")
        assert uploaded == []
        later = world.now[0] + AGE_S * 400
        assert world.services.models.collect_garbage(later, frozenset()).paths == 1
        paths = [urlsplit(address).path + "/src/score.py" for address, _ in (stored, left)]
        assert [world.client.head(path).status_code for path in paths] == [200, 404]
