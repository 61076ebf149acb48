"""The control plane's side of ``/dataplane/v1``, for tests: holds a table, hears reports.

It is HTTPS with the test's own certificate, and can be taken away and come back on the same port.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from amphitrite.dataplane.table.routing_table import RoutingTable
from amphitrite.dataplane.table.text_codec import TableText, encode_change

TOKEN = "agent-token"


class FakeControlPlane:
    """Set ``table`` by ``publish``; ``reports`` grows; ``wait_for`` waits for a report; ``gone``:
    who deregistered."""

    def __init__(self, certificate: Path, private_key: Path) -> None:
        self._files = (certificate, private_key)
        self._changed = threading.Condition()
        self._table: RoutingTable | None = None
        self._former: RoutingTable | None = None
        self._text = TableText()
        self.reports: list[dict[str, Any]] = []
        self.gone: list[str] = []
        self.metrics: dict[str, Any] | None = None  #: the newest numbers
        self.flushes: list[dict[str, Any]] = []  #: of samples
        self._server: _Server | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def start(self) -> None:
        server = _Server(("127.0.0.1", self.port), self)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self._files)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = int(server.server_address[1])
        self._server = server
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def stop(self) -> None:
        """Go away; waiting requests are answered first."""
        server, self._server = self._server, None
        if server is not None:
            with self._changed:
                server.closing = True
                self._changed.notify_all()
            server.shutdown()
            server.server_close()

    def publish(self, table: RoutingTable) -> None:
        with self._changed:
            self._former, self._table = self._table, table
            self._changed.notify_all()

    def next_table(self, server: _Server, after: int, content: str, wait_s: float, changes: bool) -> str | None:
        """Its text: to whoever takes changes and has the table before, those."""

        def news() -> RoutingTable | None:
            table = self._table
            if table is None or table.version < after:
                return None
            return table if table.version > after or (content and self._text.digest(table) != content) else None

        with self._changed:
            self._changed.wait_for(lambda: server.closing or news() is not None, wait_s)
            table, former = None if server.closing else news(), self._former
            if table is None:
                return None
            if changes and former is not None and former.version == after and self._text.digest(former) == content:
                return encode_change(former, table)
            return self._text.whole(table)

    def deregister(self, agent: str) -> None:
        with self._changed:
            self.gone.append(agent)

    def counted(self, metrics: dict[str, Any]) -> None:
        with self._changed:
            self.metrics = metrics
            self._changed.notify_all()

    def wait_for_metrics(self, fit: Callable[[dict[str, Any]], bool], timeout: float = 20.0) -> dict[str, Any]:
        """The first numbers, now or later, that ``fit``."""
        with self._changed:
            self._changed.wait_for(lambda: self.metrics is not None and fit(self.metrics), timeout)
            assert self.metrics is not None and fit(self.metrics), f"the last numbers: {self.metrics}"
            return self.metrics

    def sampled(self, flush: dict[str, Any]) -> None:
        with self._changed:
            self.flushes.append(flush)
            self._changed.notify_all()

    def wait_for_samples(self, fit: Callable[[list[list[Any]]], bool], timeout: float = 60.0) -> list[list[Any]]:
        """All samples so far, as soon as they ``fit``."""

        def samples() -> list[list[Any]]:
            return [sample for flush in self.flushes for sample in flush["samples"]]

        with self._changed:
            self._changed.wait_for(lambda: fit(samples()), timeout)
            assert fit(samples()), f"the last samples: {samples()[-5:]}"
            return samples()

    def heard(self, report: dict[str, Any]) -> None:
        with self._changed:
            self.reports.append(report)
            self._changed.notify_all()

    def wait_for(self, timeout: float = 60.0, **wanted: Any) -> dict[str, Any]:
        """The first report, now or later, whose values are these (a number: at least this)."""

        def fits(report: dict[str, Any]) -> bool:
            return all((report[k] or 0) >= v if isinstance(v, int) else report[k] == v for k, v in wanted.items())

        with self._changed:
            self._changed.wait_for(lambda: any(map(fits, self.reports)), timeout)
            found = [r for r in self.reports if fits(r)]
        assert found, f"no report with {wanted}; the last: {self.reports[-3:]}"
        return found[0]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], owner: FakeControlPlane) -> None:
        super().__init__(address, _Handler)
        self.owner = owner
        self.closing = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """An agent that was killed is no news in a test."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    # Head and body leave in one packet.
    wbufsize = 64 * 1024

    def log_message(self, format: str, *args: Any) -> None:
        return

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        table = self.server.owner.next_table(
            self.server,
            int(query["after"][0]),
            _first(query, "digest"),
            float(query["wait_s"][0]),
            _first(query, "changes") == "true",
        )
        if table is None:
            self._send(204, b"")
        else:
            self._send(200, table.encode())

    def do_DELETE(self) -> None:
        self.server.owner.deregister(self.path.rpartition("/")[2])
        self._send(204, b"")

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.server.closing:
            self._send(503, b"")
            return
        if self.path.endswith("/metrics"):
            self.server.owner.counted(json.loads(body))
        elif self.path.endswith("/samples"):
            self.server.owner.sampled(json.loads(body))
        else:
            self.server.owner.heard(json.loads(body))
        self._send(204, b"")

    def _send(self, status: int, body: bytes) -> None:
        if self.headers["authorization"] != f"Bearer {TOKEN}":
            status, body = 401, b""
        self.close_connection = self.server.closing
        self.send_response(status)
        if status != 204:
            self.send_header("content-length", str(len(body)))
        if self.close_connection:
            self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(body)


def _first(query: dict[str, list[str]], name: str) -> str:
    return query.get(name, [""])[0]
