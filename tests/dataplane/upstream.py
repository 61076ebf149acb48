"""A model server for tests: one thread for each connection, keeps what it was sent, answers by the
path.

``…/fails/…`` and the other names of ``FAILURES`` answer with a body of their own, ``…/held/…``
waits until ``release()``, ``…/vanishes/…`` closes the connection, ``…/trickles/…`` answers by
pieces without end, ``…/stalls/…`` by one and then nothing until ``release()``; all else echoes.
``ready`` decides what the health check sees.
"""

from __future__ import annotations

import hashlib
import json
import select
import socket
import threading
from collections.abc import Callable
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

FAILURES = {
    "fails": (400, b'{"error":"unexpected shape for input"}'),
    "overloaded": (503, b'{"error":"queue is full"}'),
    "quoting": (400, b'{ "error" : "no \\"such\\" thing \\\\" }\n'),
    "structured": (400, b'{"error":{"message":"in an object"}}'),
    "talkative": (500, b'{"error":"one","error_code":"two"}'),
    "wordless": (500, b""),
    "wordy": (500, b'{"error":"' + b"x" * 3_000_000 + b'"}'),
}


class Upstream:
    """Serves from ``__enter__`` to ``__exit__`` on a free loopback port, or on the UNIX socket
    ``path``."""

    def __init__(self, name: str, path: Path | None = None) -> None:
        self.name = name
        self.ready = True
        self.lost = False  #: every connection ends as soon as something is asked
        #: what it answers in place of an echo: of a body, the other body and its headers
        self.answer: Callable[[bytes], tuple[bytes, dict[str, str]]] | None = None
        self.requests: list[dict[str, Any]] = []
        self.health_checks = 0
        self.arrived = threading.Semaphore(0)  #: released for each held request that arrives
        self.left = threading.Semaphore(0)  #: released for each held request whose sender goes away
        self._gate = threading.Event()
        self._server = _Server(("127.0.0.1", 0), self) if path is None else _SocketServer(str(path), self)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def port(self) -> int:
        """0 of a UNIX socket."""
        return int(self._server.server_address[1]) if self._server.address_family == socket.AF_INET else 0

    def release(self) -> None:
        """Let all held requests, and those to come, be answered."""
        self._gate.set()

    @property
    def released(self) -> bool:
        return self._gate.is_set()

    def hold(self) -> None:
        """From now on held requests wait; those that have arrived before are not counted any
        more."""
        self._gate.clear()
        self.arrived, self.left = threading.Semaphore(0), threading.Semaphore(0)

    def wait_for_release(self, asked: socket.socket) -> None:
        """Until ``release()``, or until whoever ``asked`` goes away."""
        self.arrived.release()
        for _ in range(3000):
            if self._gate.wait(0.01):
                return
            if select.select([asked], [], [], 0)[0] and not asked.recv(1, socket.MSG_PEEK):
                self.left.release()
                return

    def scored(self) -> list[dict[str, Any]]:
        """Requests other than health checks."""
        return [r for r in self.requests if not r["path"].startswith("/v2/health/")]

    def __enter__(self) -> Upstream:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Refuse connections from now on, and end those that are open."""
        self.release()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _pause() -> None:
    """Much shorter than any timeout."""
    threading.Event().wait(0.1)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self, address: Any, upstream: Upstream) -> None:
        super().__init__(address, _SocketHandler if isinstance(address, str) else _Handler)
        self.upstream = upstream

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news in a test."""


class _SocketServer(_Server):
    address_family = socket.AF_UNIX

    def server_bind(self) -> None:
        self.socket.bind(self.server_address)

    def get_request(self) -> tuple[socket.socket, Any]:
        return self.socket.accept()[0], ("", 0)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    # Head and body leave in one packet.
    wbufsize = 64 * 1024
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:
        return

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    do_PUT = do_DELETE = do_POST

    def _answer(self) -> None:
        upstream = self.server.upstream
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if upstream.lost:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        if self.path == "/v2/health/ready":
            upstream.health_checks += 1
            self._send(200 if upstream.ready else 400, b"")
            return
        seen = {
            "upstream": upstream.name,
            "method": self.command,
            "path": self.path,
            "headers": {k.lower(): v for k, v in self.headers.items()},
            "body": len(body),
            "digest": hashlib.sha256(body).hexdigest(),
        }
        upstream.requests.append(seen)
        if "/vanishes/" in self.path:
            self.close_connection = True
            self.connection.close()
            return
        if "/held/" in self.path:
            upstream.wait_for_release(self.connection)
        if "/trickles/" in self.path or "/stalls/" in self.path:
            self._stream(partial(upstream.wait_for_release, self.connection) if "/stalls/" in self.path else _pause)
            return
        if upstream.answer is not None:
            self._send(200, *upstream.answer(body))
            return
        failure = next((FAILURES[word] for word in self.path.split("/") if word in FAILURES), None)
        self._send(*(failure or (200, json.dumps(seen).encode())))

    def _stream(self, pause: Callable[[], None]) -> None:
        """A piece, a pause, a piece and so on, until the reader goes away or there is nobody to
        wait for."""
        self.close_connection = True
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        while not self.server.upstream.released:
            self.wfile.write(b"9\r\ndata: 1\n\n\r\n")
            self.wfile.flush()
            pause()

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _SocketHandler(_Handler):
    disable_nagle_algorithm = False
