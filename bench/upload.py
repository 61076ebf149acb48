"""Upload of a model of 1 GiB: its speed beside a plain write to disk, and the server's memory.

``plain write`` writes and syncs the same bytes to a file of the same file system, before and after
the uploads; the faster one counts as the disk's speed. ``whole`` is one PUT, ``blocks`` what
Azure's SDK sends (4 MiB each, several at once) and the commit, ``ml model create`` the command line
with its own hashing and the registration. Client and server share the machine. ``sha256`` and
``md5`` are how fast one core computes the hash that names the content and the one that clients
send: no upload is faster than these. ``tls, sha256, write`` is what the same machine can do at all:
the bytes go through one TLS connection to a process that hashes and writes them, each in a thread
of its own, and syncs the file, without HTTP, store or database. The best of some runs counts, of
everything.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import multiprocessing
import os
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import psutil

from amphitrite.controlplane.auth import certificates
from amphitrite.controlplane.settings.home import Home
from bench.lists import started
from bench.product import ML, Product, Unavailable

SIZE = 1024**3
PIECE = 1024**2
RUNS = 2
BLOCK = 4 * 1024**2
CONNECTIONS = 4
POSSIBLE = "tls, sha256, write"
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
    names = ("sha256", "md5")
    best = {name: max(_hashing(name) for _ in range(RUNS)) for name in names}
    peaks: dict[str, int] = {}
    with started(work) as server:
        client = _Client(server)
        uploads: dict[str, Callable[[int], object]] = {
            POSSIBLE: lambda _: client.bare(file, work / "bare"),
            "whole": lambda _: client.whole(file),
            "blocks": lambda _: client.blocks(file),
            "ml model create": lambda run: server.ml(
                *("model", "create", "-n", "m", "-v", str(run + 1), "--type", "custom_model"),
                *("--path", str(file.parents[2])),
            ),
        }
        for run in range(RUNS):
            for number, (name, upload) in enumerate(uploads.items()):
                with file.open("r+b") as changed:
                    changed.write(bytes([run * len(uploads) + number]) * PIECE)
                with _peak(client.pid) as peak:
                    seconds = _timed(partial(upload, run))
                best[name] = max(best.get(name, 0), SIZE / seconds)
                if name != POSSIBLE:
                    peaks[name] = max(peaks.get(name, 0), *peak)
            speeds.append(_plain(file, work / "plain"))
    disk, possible = max(speeds), best[POSSIBLE]
    return [
        {
            "what": name,
            "MB_per_s": round(speed / 1e6),
            "of_disk": round(speed / disk, 2),
            "of_possible": round(speed / possible, 2) if name in peaks else "",
            "server_peak_MB": round(peaks[name] / 1e6) if name in peaks else "",
        }
        for name, speed in [("plain write", disk), *best.items()]
    ]


class _Client:
    """Sends a file as Azure's SDK does."""

    def __init__(self, server: Product) -> None:
        self.pid = int(server.ml("server", "status", "--query", "pid", "-o", "tsv"))
        url, trust = (server.ml("server", "status", "--query", name, "-o", "tsv") for name in ("api_url", "ca_file"))
        token = (server.work / "home" / "credentials" / "token").read_text().strip()
        self._netloc, self._tls = urlsplit(url).netloc, ssl.create_default_context(cafile=trust)
        self._headers = {"Authorization": f"Bearer {token}", "x-ms-blob-type": "BlockBlob"}

    @staticmethod
    def bare(file: Path, target: Path) -> None:
        """The same bytes by TLS alone to a process that does with them what an upload cannot do
        without."""
        home = Home(target.with_suffix(".home"))
        home.create()
        made = certificates.ensure(home, ["127.0.0.1"], time.time())
        trust = ssl.create_default_context(cafile=made.ca_file)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            address = listener.getsockname()
            taking = multiprocessing.get_context("fork").Process(
                target=_take, args=(listener, str(made.certificate_file), str(made.key_file), target)
            )
            taking.start()
        try:
            with trust.wrap_socket(socket.create_connection(address), server_hostname="127.0.0.1") as connection:
                with file.open("rb", buffering=0) as body:
                    while piece := body.read(PIECE):
                        connection.sendall(piece)
                if not connection.recv(1):
                    raise SystemExit("the bare transfer failed")
        finally:
            taking.join()
            target.unlink(missing_ok=True)

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


def _take(listener: socket.socket, certificate: str, key: str, target: Path) -> None:
    """Receive SIZE bytes of one connection, hash and write them meanwhile, sync, and say so with
    one byte."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    digest, left = hashlib.sha256(), SIZE
    # Of three buffers one is filled while the others are hashed and written.
    buffers = deque(memoryview(bytearray(PIECE)) for _ in range(3))
    busy: deque[list[Future[Any]]] = deque()
    with (
        context.wrap_socket(listener.accept()[0], server_side=True) as connection,
        target.open("wb", buffering=0) as file,
        ThreadPoolExecutor(1) as hasher,
        ThreadPoolExecutor(1) as writer,
    ):
        while left:
            if len(busy) == len(buffers) - 1:
                for work in busy.popleft():
                    work.result()
            buffer, filled = buffers[0], 0
            buffers.rotate(-1)
            while filled < PIECE:
                received = connection.recv_into(buffer[filled:])
                if not received:
                    return
                filled += received
            busy.append([hasher.submit(digest.update, buffer), writer.submit(file.write, buffer)])
            left -= filled
        for works in busy:
            for work in works:
                work.result()
        os.fsync(file.fileno())
        connection.sendall(b".")


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
