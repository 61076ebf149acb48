"""Connections whose handshake fails leave nothing behind, without the collector of garbage."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import struct
import sys
from asyncio import sslproto
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from amphitrite.controlplane.process import handshake_protocol
from amphitrite.controlplane.process.handshake_protocol import HandshakeProtocol

from ...certificate import write_certificate
from ...ports import free_port

HELLO = b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03"

#: What a client does that never completes its handshake.
CLIENTS: dict[str, Callable[[socket.socket], None]] = {
    "leaves": lambda client: client.close(),
    "says nothing, and is cut off": lambda client: None,
    "speaks something else": lambda client: client.sendall(b"GET / HTTP/1.1\r\n\r\n"),
    "begins and leaves": lambda client: (client.sendall(HELLO), client.close())[1],
    "resets": lambda client: reset(client),
}


def reset(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


@pytest.fixture
def no_collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sslproto, "SSLProtocol", sslproto.SSLProtocol)
    handshake_protocol.use()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def alive() -> int:
    return sum(isinstance(one, HandshakeProtocol) for one in gc.get_objects())


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has other references, and no buffer")
@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
def test_nothing_is_left(client: Callable[[socket.socket], None], tmp_path: Path, no_collector: None) -> None:
    certificate, key = write_certificate(tmp_path)
    server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server_side.load_cert_chain(certificate, key)
    trusting = ssl.create_default_context(cafile=str(certificate))
    port, before, accepted = free_port(), alive(), 0

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal accepted
        accepted += 1
        writer.write(await reader.readexactly(100_000))
        await writer.drain()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(greet, "127.0.0.1", port, ssl=server_side, ssl_handshake_timeout=0.5)
        async with server:
            for _ in range(20):
                # The kernel accepts it, so this does not wait for the server.
                clients.append(socket.create_connection(("127.0.0.1", port)))
                client(clients[-1])
            # Others are served meanwhile.
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
            writer.write(b"x" * 100_000)
            assert await reader.read() == b"x" * 100_000
            writer.close()
            while alive() > before + 2:  # Those of the good connection, until both sides have ended.
                await asyncio.sleep(0.01)

    clients: list[socket.socket] = []
    try:
        asyncio.run(asyncio.wait_for(run(), 60))
    finally:
        for one in clients:
            one.close()
    assert accepted == 1
