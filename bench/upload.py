"""Upload of a model of 1 GiB: how fast it is beside a plain write to the same disk, and the server's memory.

``plain write`` writes and syncs the same bytes to a file of the same file system, before and after the uploads; the
faster one counts as the disk's speed. ``whole`` is one PUT, ``blocks`` what Azure's SDK sends (4 MiB each, several at
once) and the commit, ``ml model create`` the command line with its own hashing and the registration. Client and server
share the machine. ``sha256`` and ``md5`` are how fast one core computes the hash that names the content and the one
that clients send: no upload is faster than these.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import os
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import psutil

from bench.lists import started
from bench.product import ML, Product, Unavailable

SIZE = 1024**3
PIECE = 1024**2
BLOCK = 4 * 1024**2
CONNECTIONS = 4
CONTAINER = "/storage/local.blob.core.windows.net/azureml-blobstore"


def run(work: Path) -> list[dict[str, Any]]:
    if not ML.exists():
        raise Unavailable(f"{ML} is missing: make install")
    file = work / "repository" / "model_1" / "1" / "model.onnx"
    file.parent.mkdir(parents=True)
    # Each upload has content of its own: what is there already is not written again.
    with file.open("wb") as target:
        for _ in range(SIZE // PIECE):
            target.write(os.urandom(PIECE))
    speeds = [_plain(file, work / "plain")]
    rows: list[tuple[str, float, float | None]] = []
    with started(work) as server:
        client = _Client(server)
        uploads: dict[str, Callable[[], object]] = {
            "whole": lambda: client.whole(file),
            "blocks": lambda: client.blocks(file),
            "ml model create": lambda: server.ml(
                *("model", "create", "-n", "m", "-v", "1", "--type", "custom_model"),
                *("--path", str(file.parents[2])),
            ),
        }
        for number, (name, upload) in enumerate(uploads.items()):
            with file.open("r+b") as changed:
                changed.write(bytes([number]) * PIECE)
            with _peak(client.pid) as peak:
                seconds = _timed(upload)
            rows.append((name, SIZE / seconds, max(peak)))
    speeds.append(_plain(file, work / "plain"))
    disk = max(speeds)
    rows = [("plain write", disk, None), *[(name, _hashing(name), None) for name in ("sha256", "md5")], *rows]
    return [
        {
            "what": name,
            "MB_per_s": round(speed / 1e6),
            "of_disk": round(speed / disk, 2),
            "server_peak_MB": "" if memory is None else round(memory / 1e6),
        }
        for name, speed, memory in rows
    ]


class _Client:
    """Sends a file as Azure's SDK does."""

    def __init__(self, server: Product) -> None:
        self.pid = int(server.ml("server", "status", "--query", "pid", "-o", "tsv"))
        url, trust = (server.ml("server", "status", "--query", name, "-o", "tsv") for name in ("api_url", "ca_file"))
        token = (server.work / "home" / "credentials" / "token").read_text().strip()
        self._netloc, self._tls = urlsplit(url).netloc, ssl.create_default_context(cafile=trust)
        self._headers = {"Authorization": f"Bearer {token}", "x-ms-blob-type": "BlockBlob"}

    def whole(self, file: Path) -> None:
        with file.open("rb") as body:
            self._put(self._connection(), "/whole", body, {"Content-Length": str(SIZE)})

    def blocks(self, file: Path) -> None:
        ids = [base64.b64encode(f"{number:06}".encode()).decode() for number in range(SIZE // BLOCK)]
        own = threading.local()

        def send(number: int) -> None:
            if not hasattr(own, "connection"):
                own.connection = self._connection()
            with file.open("rb") as source:
                source.seek(number * BLOCK)
                body = source.read(BLOCK)
            md5 = base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
            place = f"/blocks?comp=block&blockid={quote(ids[number], safe='')}"
            self._put(own.connection, place, body, {"Content-MD5": md5})

        with ThreadPoolExecutor(CONNECTIONS) as senders:
            list(senders.map(send, range(len(ids))))
        listed = "".join(f"<Latest>{one}</Latest>" for one in ids)
        self._put(self._connection(), "/blocks?comp=blocklist", f"<BlockList>{listed}</BlockList>".encode(), {})

    def _connection(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._netloc, context=self._tls, blocksize=PIECE)

    def _put(self, connection: http.client.HTTPSConnection, place: str, body: Any, headers: dict[str, str]) -> None:
        connection.request("PUT", CONTAINER + place, body, {**self._headers, **headers})
        answer = connection.getresponse()
        said = answer.read()
        if answer.status != 201:
            raise SystemExit(f"{place}: {answer.status} {said!r}")


@contextmanager
def _peak(pid: int) -> Iterator[list[int]]:
    """Bytes of memory that the process has, looked at every so often."""
    seen, ended, process = [0], threading.Event(), psutil.Process(pid)

    def look() -> None:
        while not ended.wait(0.02):
            seen.append(process.memory_info().rss)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield seen
    finally:
        ended.set()
        looking.join()


def _plain(source: Path, target: Path) -> float:
    """Bytes a second of writing and syncing the same bytes; the source is in memory already."""
    with source.open("rb") as given:
        pieces = [given.read(PIECE) for _ in range(64)]
    began = time.perf_counter()
    with target.open("wb", buffering=0) as file:
        for number in range(SIZE // PIECE):
            file.write(pieces[number % len(pieces)])
        os.fsync(file.fileno())
    took = time.perf_counter() - began
    target.unlink()
    return SIZE / took


def _hashing(name: str) -> float:
    piece, hashed = os.urandom(PIECE), hashlib.new(name, usedforsecurity=False)
    began = time.perf_counter()
    for _ in range(256):
        hashed.update(piece)
    return 256 * PIECE / (time.perf_counter() - began)


def _timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
