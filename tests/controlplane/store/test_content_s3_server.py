"""Content on a real S3 server, Versity's gateway, which checks signatures and lets addresses
expire.

It is taken from PATH, else built once by ``go install`` into the tests' cache.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import boto3
import pytest

from amphitrite.controlplane.store.content.content_store import Content, open_content

from ...cluster.machine import cache, locked
from ...ports import free_port
from ...waiting import wait_until

pytestmark = pytest.mark.slow

MODULE = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
HOW_TO = f"no S3 server: put versitygw on PATH, or Go, with which the tests build it (go install {MODULE})"
#: More than one part of a multipart upload.
DATA = os.urandom(1024) * 70 * 1024


def binary() -> str:
    found = shutil.which("versitygw", path=f"{os.environ.get('PATH', '')}:{cache()}")
    if found is None and shutil.which("go"):
        with locked(cache() / "versitygw.lock"):
            environment = {**os.environ, "GOBIN": str(cache()), "GOPATH": str(cache() / "go"), "GOFLAGS": "-modcacherw"}
            built = subprocess.run(["go", "install", MODULE], env=environment, capture_output=True, check=False)
        found = str(cache() / "versitygw") if built.returncode == 0 else None
    return found or pytest.skip(HOW_TO)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What an operator sets to reach it."""
    root = tmp_path_factory.mktemp("s3")
    address = f"127.0.0.1:{free_port()}"
    secrets = {"ROOT_ACCESS_KEY": "operator", "ROOT_SECRET_KEY": "secret-of-the-store"}
    with (root / "log").open("wb") as log:
        (root / "data").mkdir()
        command = [binary(), "--port", address, "posix", str(root / "data")]
        running = subprocess.Popen(command, env={**os.environ, **secrets}, stdout=log, stderr=log)
    try:
        host, _, port = address.partition(":")
        wait_until(lambda: _answers(host, int(port)), "the S3 server answers", detail=(root / "log").read_text)
        yield {
            "AWS_ENDPOINT_URL": f"http://{address}",
            "AWS_ACCESS_KEY_ID": secrets["ROOT_ACCESS_KEY"],
            "AWS_SECRET_ACCESS_KEY": secrets["ROOT_SECRET_KEY"],
            "AWS_DEFAULT_REGION": "us-east-1",
        }
    finally:
        running.kill()
        running.wait()


@pytest.fixture
def content(server: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Content:
    for name, value in server.items():
        monkeypatch.setenv(name, value)
    bucket = f"models-{os.getpid()}-{time.monotonic_ns()}"
    boto3.session.Session().client("s3").create_bucket(Bucket=bucket)
    return open_content(f"s3://{bucket}/of/us", tmp_path, time.time)


def put(content: Content, data: bytes = DATA) -> str:
    with content.begin(len(data)) as upload:
        upload.write(data)
        digest, size = upload.finish()
    assert (digest, size) == (hashlib.sha256(data).hexdigest(), len(data))
    return digest


def get(url: str) -> tuple[int, bytes]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    try:
        connection.request("GET", f"{parts.path}?{parts.query}")
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_content_in_several_parts(content: Content) -> None:
    digest = put(content)
    assert put(content) == digest, "once more is the same"
    assert list(content.digests()) == [digest]
    assert content.size(digest) == len(DATA)
    assert b"".join(content.read(digest, 5, 15)) == DATA[5:15]
    assert hashlib.sha256(b"".join(content.read(digest, 0, len(DATA)))).hexdigest() == digest


def test_a_signed_address_opens_one_object_for_a_while(content: Content) -> None:
    digest = put(content, b"one")
    url = content.url(digest, 600)
    assert url is not None
    assert get(url) == (200, b"one")
    forged = url.replace("X-Amz-Signature=", "X-Amz-Signature=0")
    assert get(forged)[0] == 403
    other = put(content, b"other")
    assert get(url.replace(digest, other).replace(f"/{digest[:2]}/", f"/{other[:2]}/"))[0] == 403
    short = content.url(digest, 1)
    assert short is not None
    wait_until(lambda: get(short)[0] == 403, "it has expired", 10)


def test_what_is_old_goes_and_what_was_put_again_stays(content: Content) -> None:
    digest = put(content, b"old")
    assert not content.discard_older(digest, time.time() - 60)
    assert content.discard_older(digest, time.time() + 60)
    assert list(content.digests()) == []


def _answers(host: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0
