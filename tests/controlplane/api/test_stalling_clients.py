"""Clients that lie about lengths, say things no client says, or stop talking: over TLS, against the
server as it is."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from amphitrite.controlplane.auth import certificates
from amphitrite.controlplane.process import connection_limits, https_server
from amphitrite.controlplane.process.app import create_app
from amphitrite.controlplane.process.handshakes import BURST, Handshakes

from ...ports import free_port
from ...waiting import wait_until
from .conftest import BLOBS, opened

pytestmark = pytest.mark.slow  # Each waits for a limit of the server.

CONNECTIONS = 12
#: What is read of a body after its answer.
REST_BYTES = 4_000_000
#: Connections before TLS: how many there may be, and for how many seconds.
HANDSHAKES, HANDSHAKE_S = 20, 0.8


class Quick(connection_limits.ConnectionLimitsProtocol):
    """As in service, within a test's time."""

    HEAD_S = 0.8
    IDLE_S = 0.8
    CONNECTIONS_MAX = CONNECTIONS
    REST_BYTES, REST_S = REST_BYTES, 2.5


class Live:
    """A server on a free port."""

    def __init__(self, world: Any, port: int, trust: Path) -> None:
        self.world, self.port, self._trust = world, port, trust
        self.token = world.services.credentials.token.reveal().encode()

    def connect(self) -> ssl.SSLSocket:
        context = ssl.create_default_context(cafile=str(self._trust))
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        return context.wrap_socket(plain, server_hostname="127.0.0.1")

    def head(self, name: bytes, *headers: bytes, query: bytes = b"") -> bytes:
        lines = [b"PUT " + BLOBS.encode() + b"/" + name + query + b" HTTP/1.1", b"Host: test"]
        lines += [b"Authorization: Bearer " + self.token, b"Accept: application/xml", b"x-ms-blob-type: BlockBlob"]
        return b"\r\n".join([*lines, *headers, b"", b""])

    def says(self, sent: bytes, *, end: bool = True) -> bytes:
        """Everything that the server answers until it closes the connection; ``end``: the client
        says no more."""
        with self.connect() as connection:
            connection.sendall(sent)
            if end:
                with contextlib.suppress(OSError):
                    connection.unwrap()
            return read(connection)

    def left(self) -> list[Path]:
        """Files of uploads that are under way."""
        return list((self.world.services.settings.home.models / "temporary").iterdir())

    def cleaned(self) -> bool:
        return wait_until(lambda: not self.left(), "nothing of an upload is left")


def read(connection: ssl.SSLSocket) -> bytes:
    said = b""
    with contextlib.suppress(OSError):
        while data := connection.recv(65536):
            said += data
    return said


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with opened(tmp_path_factory.mktemp("live") / "home") as world:
        made = certificates.ensure(world.services.settings.home, ["127.0.0.1"], time.time())
        settings, pending = replace(world.services.settings, port=free_port()), Handshakes(HANDSHAKES, HANDSHAKE_S)
        server = https_server.server(settings, made, create_app(world.services), pending, 65_536)
        server.config.http = type("Quick", (Quick,), {"handshakes": pending})
        thread = threading.Thread(target=server.run, args=(https_server.sockets(settings, pending),))
        thread.start()
        try:
            yield Live(world, settings.port, made.ca_file)
        finally:
            server.should_exit = True
            thread.join(60)
        assert not thread.is_alive()


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ((b"Content-Length: -1",), b"x", b"400"),
        ((b"Content-Length: x",), b"x", b"400"),
        ((b"Content-Length: 1", b"Content-Length: 2"), b"xx", b"400"),
        ((b"Content-Length: 99999999999999999999999999",), b"x", b"400"),
        ((b"Content-Length: 99999999999999",), b"x", b"413"),
        ((), b"", b"411"),
        ((b"Transfer-Encoding: chunked",), b"zz\r\nx\r\n", b"400"),
        ((b"Transfer-Encoding: chunked",), b"-1\r\nx\r\n", b"400"),
        ((b"Transfer-Encoding: gzip",), b"x", b"400"),
        ((b"X: " + b"x" * 70_000,), b"", b"4"),
    ],
)
def test_lengths_that_are_none(live: Live, headers: tuple[bytes, ...], body: bytes, status: bytes) -> None:
    said = live.says(live.head(b"lying", *headers, b"Connection: close") + body, end=False)
    assert said.startswith(b"HTTP/1.1 " + status) or (status[:1] == b"4" and said == b""), said[:200]
    assert live.world.client.head(f"{BLOBS}/lying").status_code == 404
    assert live.cleaned()


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ((b"Content-Length: 3000000",), b"x" * 2_000_000),
        ((b"Transfer-Encoding: chunked",), b"200000\r\n" + b"x" * 0x200000 + b"\r\n5\r\nxx"),
    ],
)
@pytest.mark.parametrize("query", [b"", b"?comp=block&blockid=MQ%3D%3D"])
@pytest.mark.parametrize("end", [True, False], ids=["gone", "silent"])
def test_a_body_that_ends_too_early(
    live: Live, headers: tuple[bytes, ...], body: bytes, query: bytes, end: bool
) -> None:
    assert live.says(live.head(b"short", *headers, query=query) + body, end=end) == b""
    assert live.world.client.head(f"{BLOBS}/short").status_code == 404
    assert live.cleaned()
    assert list((live.world.services.settings.home.models / "blocks").iterdir()) == []


def test_a_body_that_is_longer_than_it_says_is_cut_there(live: Live) -> None:
    said = live.says(live.head(b"long", b"Content-Length: 3", b"Connection: close") + b"abcGET / HTTP/1.1\r\n\r\n")
    assert said.count(b"HTTP/1.1") <= 1
    # The server may have ended the connection for what came behind before it had taken the three
    # bytes.
    found = live.world.client.get(f"{BLOBS}/long")
    assert found.status_code == 404 or found.content == b"abc"


@pytest.mark.parametrize("name", [b"../x", b"a/../../x", b"a/./x", b"..", b"a/..", b"../../../../etc/cron.d/x"])
def test_names_as_no_client_library_sends_them(live: Live, name: bytes) -> None:
    said = live.says(live.head(name, b"Content-Length: 1", b"Connection: close") + b"x", end=False)
    assert said.startswith(b"HTTP/1.1 400") and b"InvalidResourceName" in said
    assert live.cleaned()


def test_a_head_that_never_ends(live: Live) -> None:
    """A byte now and then keeps no connection: the whole head has its time."""
    with live.connect() as connection:
        left = iter(live.head(b"slow", b"Content-Length: 1"))
        with contextlib.suppress(OSError):
            for byte in left:
                connection.sendall(bytes([byte]))
                if select_closed(connection, 0.05):
                    break
        assert read(connection) == b""
    assert bytes(left), "it took the whole head"


def select_closed(connection: ssl.SSLSocket, seconds: float) -> bool:
    """Whether the server has closed the connection; waits that long for it."""
    connection.settimeout(seconds)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True
    finally:
        connection.settimeout(60)


def test_stalling_clients_keep_nobody_else_out(live: Live) -> None:
    """More than there may be at one time, each silent at another place; whoever comes then is
    answered."""
    places = [b"", b"PUT /", live.head(b"s")[:-2], live.head(b"s", b"Content-Length: 9") + b"x"]
    with contextlib.ExitStack() as stack:
        stalling = [stack.enter_context(live.connect()) for _ in range(3 * CONNECTIONS)]
        for number, connection in enumerate(stalling):
            with contextlib.suppress(OSError):
                connection.sendall(places[number % len(places)])
        said = live.says(live.head(b"honest", b"Content-Length: 2", b"Connection: close") + b"ok", end=False)
        assert said.startswith(b"HTTP/1.1 201"), said
        # All of them are given up, and nothing of theirs is left.
        assert all(read(connection) == b"" for connection in stalling)
    assert live.cleaned()
    assert live.world.client.get(f"{BLOBS}/honest").content == b"ok"


def plain(live: Live) -> socket.socket:
    """A connection without TLS, which needs no credentials."""
    return socket.create_connection(("127.0.0.1", live.port), timeout=60)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_request_without_tls_is_told_the_address(live: Live, method: str) -> None:
    answer = httpx.request(method, f"http://127.0.0.1:{live.port}/subscriptions", trust_env=False)
    assert (answer.status_code, answer.headers["connection"]) == (400, "close")
    error = answer.json()["error"]
    assert error["code"] == "HttpsRequired"
    assert error["message"].endswith(f"the address is https://127.0.0.1:{live.port}")


def test_connections_without_tls_take_few_descriptors_for_a_short_time(live: Live) -> None:
    """Ten times as many as there may be. The oldest make room, whoever comes then is answered, and
    all of them end in time, whether silent or with a part of a handshake."""
    before = descriptors()
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(plain(live)) for _ in range(10 * HANDSHAKES)]
        for connection in silent[::2]:
            with contextlib.suppress(OSError):
                connection.sendall(b"\x16\x03\x01\x02\x00\x01")
        said = live.says(live.head(b"after", b"Content-Length: 2", b"Connection: close") + b"ok", end=False)
        assert said.startswith(b"HTTP/1.1 201"), said
        assert descriptors() - before - len(silent) <= HANDSHAKES + BURST
        for connection in silent:
            with contextlib.suppress(ConnectionError):
                assert connection.recv(1) == b""
    wait_until(lambda: descriptors() <= before + 4, "their descriptors are closed")


def descriptors() -> int:
    """How many this process has: the server's, and the clients'."""
    return len(os.listdir("/proc/self/fd"))


LENGTHS = {"announced": b"Content-Length: 1000000000000", "chunked": b"Transfer-Encoding: chunked"}


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize(("size", "pause_s"), [(0x10000, 0.0), (1, 0.02)], ids=["fast", "slow"])
def test_a_body_is_not_read_without_end_after_its_answer(live: Live, length: str, size: int, pause_s: float) -> None:
    """Nobody is known to have sent it: the answer is 401. Fast clients meet the limit of bytes,
    slow ones the limit of time, though they never stop."""
    head = b"\r\n".join([b"PUT " + BLOBS.encode() + b"/flood HTTP/1.1", b"Host: test", LENGTHS[length], b"", b""])
    piece = b"x" * size if length == "announced" else b"%x\r\n" % size + b"x" * size + b"\r\n"
    # The kernel holds a few megabytes on the way.
    most, pause = 3 * REST_BYTES // size if pause_s == 0 else 1000, threading.Event()
    with live.connect() as connection:
        connection.sendall(head)
        assert connection.recv(12) == b"HTTP/1.1 401"
        sent, ended = 0, False
        while sent < most and not ended:
            try:
                connection.sendall(piece)
            except OSError:
                ended = True
            sent += 1
            pause.wait(pause_s)
        assert ended
        assert sent > 10


@pytest.mark.parametrize("length", LENGTHS)
def test_a_body_of_any_usual_size_may_end_after_its_answer(live: Live, length: str) -> None:
    """And the connection is kept."""
    size = REST_BYTES // 2
    announced = b"Content-Length: %d" % size if length == "announced" else LENGTHS[length]
    body = b"x" * size if length == "announced" else b"%x\r\n" % size + b"x" * size + b"\r\n0\r\n\r\n"
    head = b"\r\n".join([b"PUT " + BLOBS.encode() + b"/refused HTTP/1.1", b"Host: test", announced, b"", b""])
    with live.connect() as connection:
        for _ in range(3):
            connection.sendall(head + body)
            said = b""
            while b"AuthenticationFailed" not in said:
                said += connection.recv(65536)
            assert said.startswith(b"HTTP/1.1 401")
            while not said.endswith(b"}}"):
                said += connection.recv(65536)
