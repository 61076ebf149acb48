"""Limits on connections whose TLS handshake is not complete: their number and their time.

Decides which of them ends: each after a deadline, and above the limit the oldest. asyncio accepts
and encrypts, and limits neither; the server's protocol exists only after the handshake. Must not
know TLS or requests.

A connection is ended by ``shutdown`` of its socket, which asyncio sees as the client's end. All of
it runs in the event loop of one server.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Sequence
from typing import Any

#: Seconds in which a handshake must be complete. asyncio's own limit is 60 s.
DEADLINE_S = 10.0
#: The number of connections without a complete handshake. Clients need milliseconds for one.
AT_MOST = 512
#: Connections that are accepted in one turn of the event loop. In the next turn those that had to
#: make room are closed, so no more descriptors than this are in use above the limits.
BURST = 64
#: Connections that the kernel keeps until they are accepted.
BACKLOG = 2048


class Handshakes:
    """The connections of one server that have been accepted and are not encrypted yet."""

    def __init__(self, at_most: int = AT_MOST, deadline_s: float = DEADLINE_S) -> None:
        self._at_most, self._deadline_s = at_most, deadline_s
        # By descriptor, oldest first.
        self._pending: dict[int, tuple[socket.socket, asyncio.TimerHandle]] = {}

    def begin(self, connection: socket.socket) -> None:
        """``connection`` was accepted."""
        descriptor = connection.fileno()
        self.complete(descriptor)
        timer = asyncio.get_running_loop().call_later(self._deadline_s, self._end, descriptor)
        self._pending[descriptor] = connection, timer
        if len(self._pending) > self._at_most:
            self._end(next(iter(self._pending)))

    def complete(self, descriptor: int) -> None:
        """The handshake of the connection with this descriptor is complete, or the connection is
        closed."""
        if found := self._pending.pop(descriptor, None):
            found[1].cancel()

    def _end(self, descriptor: int) -> None:
        connection, timer = self._pending.pop(descriptor)
        timer.cancel()
        with contextlib.suppress(OSError):  # The client may have gone.
            connection.shutdown(socket.SHUT_RDWR)


class ListeningSocket(socket.socket):
    """A socket that tells ``handshakes`` of each connection that it accepts."""

    handshakes: Handshakes
    _burst = 0

    def accept(self) -> tuple[socket.socket, Any]:
        """As asyncio calls it: repeatedly, until there is no connection or BlockingIOError."""
        if self._burst >= BURST:
            self._burst = 0
            raise BlockingIOError
        try:
            plain, address = super().accept()
        except OSError:
            self._burst = 0
            raise
        self._burst += 1
        connection = _Connection(plain.family, plain.type, plain.proto, plain.detach())
        connection.handshakes = self.handshakes
        self.handshakes.begin(connection)
        return connection, address

    def listen(self, backlog: int = BACKLOG, /) -> None:
        """asyncio's backlog is also the number of its calls of ``accept``."""
        super().listen(BACKLOG)


class _Connection(socket.socket):
    handshakes: Handshakes

    def close(self) -> None:
        self.handshakes.complete(self.fileno())
        super().close()


def listen(addresses: Sequence[tuple[socket.AddressFamily, Any]], handshakes: Handshakes) -> list[socket.socket]:
    """A listening socket for each (family, address). A socket on ``::`` takes IPv4 too if it is the
    only one. Raises OSError."""
    opened: list[socket.socket] = []
    try:
        for family, address in addresses:
            one = ListeningSocket(family, socket.SOCK_STREAM)
            opened.append(one)
            one.handshakes = handshakes
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                both = address[0] == "::" and len(addresses) == 1
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(not both))
            one.bind(address)
            one.listen()
    except OSError:
        for each in opened:
            each.close()
        raise
    return opened
