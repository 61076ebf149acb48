"""Clients that mean harm: each is refused or cut off, Envoy's memory stays bounded, and others are
served meanwhile."""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import struct
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import psutil
import pytest

from amphitrite.dataplane.envoy.process.admin_client import AdminClient

from ..waiting import DEADLINE_S
from .agents import BEARER, INFER, KEY, RunningAgent, eventually, serves
from .http2 import Http2
from .rule_table import MAX_UNSIZED_BODY
from .upstream import Upstream

pytestmark = pytest.mark.serving
Rules = tuple[RunningAgent, dict[str, Upstream]]

#: Far more than an Envoy at rest differs by from one moment to the next, far less than what is sent
#: at it.
GROWTH_BYTES = 64 * 1024 * 1024
HEAD = f"POST {INFER} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\n"
#: Without a key: to be refused wherever it is read as a request of its own.
SECOND = "POST /endpoints/images/v2/models/smuggled/infer HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
SECOND += "content-length: 0\r\n\r\n"

#: Requests of which one reader sees one and another two. RFC 9112, sections 5 to 7 and 11.2.
SMUGGLED = {
    "both lengths": HEAD + f"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{SECOND}",
    "two lengths": HEAD + f"content-length: 0\r\ncontent-length: {len(SECOND)}\r\n\r\n{SECOND}",
    "a list of lengths": HEAD + f"content-length: 0, {len(SECOND)}\r\n\r\n{SECOND}",
    "a signed length": HEAD + f"content-length: +0\r\n\r\n{SECOND}",
    "a space before the colon": HEAD + f"content-length: 5\r\ntransfer-encoding : chunked\r\n\r\n0\r\n\r\n{SECOND}",
    "an unknown coding": HEAD + f"transfer-encoding: xchunked\r\n\r\n0\r\n\r\n{SECOND}",
    "chunked not last": HEAD + f"transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n{SECOND}",
    "a folded line": HEAD + f"x-a: b\r\n transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n{SECOND}",
    "bare line feeds": HEAD.replace("\r\n", "\n") + f"x-a: b\n\n{SECOND}",
    "a bare carriage return": HEAD + f"x-a: b\rcontent-length: 0\r\n\r\n{SECOND}",
    "a nul": HEAD + f"x-a: b\0\r\ncontent-length: 0\r\n\r\n{SECOND}",
    "a wrong chunk size": HEAD + f"transfer-encoding: chunked\r\n\r\n0x0\r\n\r\n{SECOND}",
    "a line break in the first line": f"POST {INFER} HTTP/1.1\r HTTP/1.1\r\nhost: x\r\n\r\n{SECOND}",
    "another version": HEAD.replace("HTTP/1.1", "HTTP/3.7") + f"content-length: 0\r\n\r\n{SECOND}",
}


def connected(agent: RunningAgent) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=str(agent.certificate))
    return context.wrap_socket(
        socket.create_connection(("127.0.0.1", agent.port), timeout=30), server_hostname="127.0.0.1"
    )


def said(connection: ssl.SSLSocket) -> bytes:
    """All that comes until the other side ends the connection."""
    answer = b""
    with contextlib.suppress(OSError):
        while more := connection.recv(65536):
            answer += more
    return answer


#: What Envoy answers to the first request where it is not 400. A folded line is unfolded, as the
#: RFC allows. Another version counts as HTTP/1.0: the connection ends with the answer.
OTHERWISE = {
    "an unknown coding": 501,
    "chunked not last": 501,
    "a folded line": 200,
    "bare line feeds": 200,
    "a bare carriage return": 200,
    "another version": 200,
}


@pytest.mark.parametrize("shape", SMUGGLED)
def test_nothing_is_smuggled(shape: str, scoring: RunningAgent, rules: Rules) -> None:
    with connected(scoring) as connection:
        connection.sendall(SMUGGLED[shape].encode())
        answer = said(connection)
    first, *more = (int(status) for status in re.findall(rb"(?m)^HTTP/1\.[01] (\d{3}) ", answer))
    assert first == OTHERWISE.get(shape, 400), answer
    assert set(more) <= {400, 401}, answer
    assert not [r for upstream in rules[1].values() for r in upstream.scored() if "smuggled" in r["path"]]


def resident(agent: RunningAgent) -> int:
    return int(psutil.Process(agent.envoy().pid).memory_info().rss)


def rapid_reset(agent: RunningAgent) -> None:
    """Thousands of streams on one connection, each taken back at once."""
    with Http2("127.0.0.1", agent.port) as client:
        head = [(":method", "POST"), (":path", INFER), (":scheme", "https"), (":authority", client.authority)]
        with contextlib.suppress(OSError):
            for _ in range(5000):
                stream = client.h2.get_next_available_stream_id()
                client.h2.send_headers(stream, [*head, *BEARER.items()])
                client.h2.reset_stream(stream)
                client.flush()
        ended_by_the_other_side(client)


def continuation_flood(agent: RunningAgent) -> None:
    """Headers that never end: 40 MB of them, each frame a new header."""
    with Http2("127.0.0.1", agent.port) as client, contextlib.suppress(OSError):
        part = b"\x00\x07x-flood\x7f\x81\x7e" + b"a" * 16000
        client.socket.sendall(frame(1, 0, 1, b"\x83"))
        for _ in range(2500):
            client.socket.sendall(frame(9, 0, 1, part))
        ended_by_the_other_side(client)


def settings_flood(agent: RunningAgent) -> None:
    """Settings, each of which asks for an answer that is not read."""
    with Http2("127.0.0.1", agent.port) as client, contextlib.suppress(OSError):
        client.socket.sendall(frame(4, 0, 0, b"") * 50_000)
        ended_by_the_other_side(client)


def header_flood(agent: RunningAgent) -> None:
    for lines in (1000, 100_000):
        with connected(agent) as connection:
            with contextlib.suppress(OSError):
                connection.sendall((HEAD + "".join(f"x-{i}: {i}\r\n" for i in range(lines)) + "\r\n").encode())
            answer = said(connection)
            assert not answer or answer.startswith(b"HTTP/1.1 431 "), answer


def slow_requests(agent: RunningAgent) -> None:
    """Hundreds of requests that never come whole: half of them in the head, half in a body, without
    a key."""
    with contextlib.ExitStack() as stack:
        for number in range(300):
            connection = stack.enter_context(connected(agent))
            head = HEAD if number % 2 else HEAD.replace(KEY, "nope") + "content-length: 1000000\r\n\r\nx"
            connection.sendall(head.encode())
        assert serves(agent)


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def ended_by_the_other_side(client: Http2) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not client.ended:
        assert time.monotonic() < deadline, "it lets that pass"
        client.received()


ATTACKS: list[Callable[[RunningAgent], None]] = [
    rapid_reset,
    continuation_flood,
    settings_flood,
    header_flood,
    slow_requests,
]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda a: a.__name__)
def test_others_are_served_and_memory_stays_bounded(
    attack: Callable[[RunningAgent], None], scoring: RunningAgent
) -> None:
    assert serves(scoring)
    envoy, before = scoring.envoy(), resident(scoring)
    attack(scoring)
    assert serves(scoring)
    assert scoring.envoy() == envoy
    eventually(lambda: resident(scoring) - before < GROWTH_BYTES)


def test_a_body_that_was_held_is_not_kept_while_a_model_works(scoring: RunningAgent, rules: Rules) -> None:
    """As it would be for a retry: the proxy has each body once at most, and only until it is
    forwarded."""
    count, size = 20, MAX_UNSIZED_BODY - 1
    path = "/endpoints/images/v2/models/held/infer"
    transport = httpx.HTTPTransport(uds=str(scoring.run / "envoy-admin.sock"))

    def ask() -> int:
        headers = {**BEARER, "azureml-model-deployment": "blue"}
        return scoring.client.post(path, headers=headers, content=iter([b"x" * size])).status_code

    with httpx.Client(transport=transport) as admin, ThreadPoolExecutor(count) as pool:

        def allocated() -> int:
            return int(admin.get("http://envoy/memory").json()["allocated"])

        before = allocated()
        waiting = [pool.submit(ask) for _ in range(count)]
        for _ in waiting:
            assert rules[1]["blue"].arrived.acquire(timeout=30)
        eventually(lambda: allocated() - before < count * size / 2)
        rules[1]["blue"].release()
        assert {one.result() for one in waiting} == {200}


def test_a_silent_client_gives_its_place_back(scoring: RunningAgent) -> None:
    """With a valid key, and a body that never comes whole: both places of ``solo`` are taken, but
    not for long."""
    path = "/endpoints/solo/v2/models/m/infer"
    head = HEAD.replace(INFER, path) + "content-length: 1000\r\n\r\nx"

    def asked() -> int:
        return scoring.client.post(path, headers=BEARER, json={}).status_code

    def held() -> int:
        return sum(host.active for host in admin.hosts({"solo"})["solo"])

    assert asked() == 200
    admin = AdminClient(scoring.run / "envoy-admin.sock")
    with contextlib.closing(admin), connected(scoring) as one, connected(scoring) as other:
        for before, connection in enumerate((one, other)):
            eventually(lambda taken=before: held() == taken)
            connection.sendall(head.encode())
        eventually(lambda: held() == 2)
        assert asked() == 429
        assert serves(scoring)
        for connection in (one, other):
            told = connection.recv(65536)
            assert told.startswith(b"HTTP/1.1 408 ") and b"no byte was sent or received for 10.5 s" in told, told
        assert asked() == 200
