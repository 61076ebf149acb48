"""The load generator counts each request once, whatever happens to it: its figures equal the
server's own."""

from __future__ import annotations

import json
import socketserver
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..certificate import write_certificate

GENERATOR = Path(__file__).with_name("closed_loop.py")
DEADLINE_S = 60

#: path -> answer; None: the connection is closed instead.
ANSWERS: dict[str, bytes | None] = {
    "/ok": b"HTTP/1.1 200 OK\r\nazureml-model-deployment: blue\r\ncontent-length: 2\r\n\r\nok",
    "/close": b"HTTP/1.1 200 OK\r\nConnection: close\r\ncontent-length: 2\r\n\r\nok",
    "/chunked": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n3\r\nyes\r\n0\r\n\r\n",
    "/busy": b"HTTP/1.1 429 Too Many Requests\r\ncontent-length: 4\r\n\r\nbusy",
    "/cut": b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\nconnection: close\r\n\r\nhalf",
    "/drop": None,
}


class Server(socketserver.ThreadingTCPServer):
    """A TLS server that answers by path and counts whole requests under ``seen``."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, directory: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.certificate, private_key = write_certificate(directory)
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(self.certificate, private_key)
        self.seen = 0
        self.counted = threading.Condition()

    def count(self) -> None:
        with self.counted:
            self.seen += 1
            self.counted.notify_all()

    def url(self, path: str) -> str:
        return f"https://127.0.0.1:{self.server_address[1]}{path}"


class Handler(socketserver.BaseRequestHandler):
    server: Server

    def handle(self) -> None:
        try:
            with self.server.tls.wrap_socket(self.request, server_side=True) as connection:
                self._answer(connection)
        except OSError:
            return  # the client went away, or did not trust the certificate

    def _answer(self, connection: ssl.SSLSocket) -> None:
        unread = b""
        while True:
            while b"\r\n\r\n" not in unread:
                if not (received := connection.recv(65536)):
                    return
                unread += received
            head, _, unread = unread.partition(b"\r\n\r\n")
            length = next((int(x[15:]) for x in head.split(b"\r\n") if x.startswith(b"Content-Length:")), 0)
            while len(unread) < length:
                unread += connection.recv(65536)
            unread = unread[length:]
            self.server.count()
            answer = ANSWERS[head.split(b" ", 2)[1].decode()]
            if answer is None:
                return
            connection.sendall(answer)
            if b"onnection: close" in answer:
                return


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def command(url: str, *options: str) -> list[str]:
    return [sys.executable, str(GENERATOR), "--url", url, "--json", *options]


def load(url: str, *options: str) -> dict[str, Any]:
    done = subprocess.run(command(url, *options), capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.stderr == ""
    result: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == (1 if result["failed"] else 0)
    return result


@pytest.mark.parametrize(
    ("path", "want"),
    [
        ("/ok", {"failed": 0, "statuses": {"200": 20}, "deployments": {"blue": 20}, "reconnects": 0}),
        ("/close", {"failed": 0, "statuses": {"200": 20}, "reconnects": 19, "connection_errors": {}}),
        ("/chunked", {"failed": 0, "statuses": {"200": 20}, "reconnects": 0}),
        ("/busy", {"failed": 20, "statuses": {"429": 20}, "connection_errors": {}}),
        ("/cut", {"failed": 20, "statuses": {}, "connection_errors": {"NotHttp": 20}}),
        ("/drop", {"failed": 20, "statuses": {}, "connection_errors": {"NotHttp": 20}}),
    ],
)
def test_every_request_is_sent_once_and_counted_once(server: Server, path: str, want: dict[str, Any]) -> None:
    options = ("--cafile", str(server.certificate), "--connections", "1", "--requests", "20")
    result = load(server.url(path), *options)
    assert {name: result[name] for name in want} == want
    assert result["requests"] == server.seen == 20


def test_a_failure_is_shown_with_its_body(server: Server) -> None:
    result = load(server.url("/busy"), "--cafile", str(server.certificate), "--requests", "30")
    assert len(result["failures"]) == 5
    assert {(f["what"], f["body"]) for f in result["failures"]} == {("status 429", "busy")}


def test_a_body_is_posted_and_connections_share_the_budget(server: Server, tmp_path: Path) -> None:
    body = tmp_path / "body"
    body.write_bytes(b"x" * 200_000)
    options = ("--cafile", str(server.certificate), "--body-file", str(body), "--connections", "4")
    result = load(server.url("/ok"), *options, "--requests", "50")
    assert (result["requests"], result["failed"], server.seen) == (50, 0, 50)


def test_a_server_that_is_not_trusted_gets_no_request(server: Server) -> None:
    result = load(server.url("/ok"), "--connections", "1", "--requests", "2")
    assert result["connection_errors"] == {"SSLCertVerificationError": 2}
    assert (result["failed"], server.seen) == (2, 0)


def test_a_refused_connection_is_a_failed_request(server: Server, tmp_path: Path) -> None:
    with Server(tmp_path) as gone:
        url = gone.url("/ok")
    result = load(url, "--connections", "1", "--requests", "2")
    assert (result["failed"], result["connection_errors"]) == (2, {"ConnectionRefusedError": 2})


def test_it_runs_until_the_file_exists(server: Server, tmp_path: Path) -> None:
    stop, count = tmp_path / "stop", tmp_path / "count"
    files = ("--until-file", str(stop), "--count-file", str(count))
    options = ("--cafile", str(server.certificate), "--connections", "2", *files)
    with subprocess.Popen(command(server.url("/ok"), *options), stdout=subprocess.PIPE, text=True) as process:
        with server.counted:
            assert server.counted.wait_for(lambda: server.seen >= 50, timeout=DEADLINE_S)
        stop.touch()
        output, _ = process.communicate(timeout=DEADLINE_S)
    result = json.loads(output)
    assert process.returncode == 0
    assert result["requests"] == server.seen == int(count.read_text()) >= 50
