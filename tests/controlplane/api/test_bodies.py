"""Bodies of every length and framing, one request behind the other on one connection: each arrives
as it was sent."""

from __future__ import annotations

import os
import re
import time

import pytest

from amphitrite.controlplane.process import http_protocol

from .conftest import BLOBS
from .test_stalling_clients import Live, Quick, live, read, select_closed

__all__ = ["live"]

PIECE, HEAD = http_protocol._BUFFER_BYTES, http_protocol._HEAD_BYTES
WAITING = http_protocol._PAUSE_AT * PIECE
CLOSE = b"Connection: close"


def statuses(said: bytes) -> list[bytes]:
    return re.findall(rb"HTTP/1\.1 (\d{3}) ", said)


def sized(content: bytes) -> bytes:
    return b"Content-Length: %d" % len(content)


@pytest.mark.parametrize("at_once", [True, False], ids=["pipelined", "one by one"])
def test_one_after_the_other(live: Live, at_once: bool) -> None:
    lengths = [0, 1, HEAD - 1, HEAD, HEAD + 1, PIECE, HEAD + PIECE - 300, 4 * PIECE + 1, WAITING + 2 * PIECE + 7, 5]
    contents = [os.urandom(length) for length in lengths]
    sent = [live.head(b"body%d" % n, sized(content)) + content for n, content in enumerate(contents)]
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in contents[6:8])
    sent.insert(4, live.head(b"chunked", b"Transfer-Encoding: chunked") + chunks + b"0\r\n\r\n")
    sent.append(live.head(b"last", CLOSE, sized(b"z")) + b"z")
    if at_once:
        said = live.says(b"".join(sent), end=False)
    else:
        with live.connect() as connection:
            said = b""
            for request in sent:
                connection.sendall(request)
                while not said.endswith(b"\r\n\r\n") or len(statuses(said)) <= sent.index(request):
                    said += connection.recv(65536)
    assert statuses(said) == [b"201"] * len(sent)
    for number, content in enumerate(contents):
        assert live.world.client.get(f"{BLOBS}/body{number}").content == content
    assert live.world.client.get(f"{BLOBS}/chunked").content == contents[6] + contents[7]
    assert live.cleaned()


@pytest.mark.parametrize("length", [1, PIECE, WAITING + PIECE + 1])
@pytest.mark.parametrize("header", [b"Content-MD5: x", b"x-ms-lease-id: x"])
def test_a_body_that_nobody_wants_is_passed_over(live: Live, length: int, header: bytes) -> None:
    """The refusal comes first; the connection goes on with the next request."""
    content = os.urandom(length)
    taken = live.head(b"taken", CLOSE, b"Content-Length: 2") + b"ok"
    said = live.says(live.head(b"refused", header, sized(content)) + content + taken, end=False)
    assert statuses(said) == [b"400", b"201"]
    assert live.world.client.head(f"{BLOBS}/refused").status_code == 404
    assert live.world.client.get(f"{BLOBS}/taken").content == b"ok"


def test_a_body_that_nobody_wants_may_take_longer_than_a_head(live: Live) -> None:
    """Else a client that sends all before it listens would never hear the refusal."""
    began, length = time.monotonic(), 0
    with live.connect() as connection:
        connection.sendall(live.head(b"refused", b"x-ms-lease-id: x", b"Content-Length: 10000"))
        while time.monotonic() - began < 2 * Quick.HEAD_S:
            connection.sendall(b"x")
            length += 1
            assert not select_closed(connection, 0.05)
        rest = b"x" * (10_000 - length)
        connection.sendall(rest + live.head(b"taken", CLOSE, b"Content-Length: 2") + b"ok")
        assert b" 201 " in read(connection)


def test_a_client_that_asks_before_it_sends(live: Live) -> None:
    content = os.urandom(PIECE + 1)
    with live.connect() as connection:
        connection.sendall(live.head(b"asked", CLOSE, b"Expect: 100-continue", sized(content)))
        assert statuses(connection.recv(65536)) == [b"100"]
        connection.sendall(content)
        assert statuses(read(connection)) == [b"201"]
    assert live.world.client.get(f"{BLOBS}/asked").content == content


def test_a_body_that_comes_in_crumbs(live: Live) -> None:
    content = os.urandom(3 * PIECE)
    request = live.head(b"crumbs", CLOSE, sized(content)) + content
    with live.connect() as connection:
        for start in range(0, 2000, 7):
            connection.sendall(request[start : min(start + 7, 2000)])
        for start in range(2000, len(request), 4999):
            connection.sendall(request[start : start + 4999])
        assert statuses(read(connection)) == [b"201"]
    assert live.world.client.get(f"{BLOBS}/crumbs").content == content


def test_a_list_in_many_pieces_is_read_as_a_whole(live: Live) -> None:
    """Routes that want a body as a whole get it as bytes, whatever way it came."""
    ids = b"<BlockList>" + b" " * (2 * PIECE) + b"<Latest>bm9uZQ==</Latest></BlockList>"
    said = live.says(live.head(b"listed", CLOSE, sized(ids), query=b"?comp=blocklist") + ids, end=False)
    assert statuses(said) == [b"400"] and b"InvalidBlockList" in said
