"""Sends a recorded request again, to an instance of another target.

Decides where a request goes and how long its answer may take. It goes straight to the instance, so
that it counts as nobody's request and needs no key. An instance that cannot be reached has run
nothing, so the next one is tried. Must not know why a request is sent again. Source: Triton's
document "HTTP/REST and GRPC Protocol".
"""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from amphitrite.dataplane.comparison.answers import BODY_MAX, JSON_LENGTH
from amphitrite.dataplane.table.routing_table import InstanceAddress, SocketAddress

_CONNECT_TIMEOUT_S = 1.0
_PIECE = 64 * 1024


@dataclass(frozen=True, slots=True)
class Answer:
    """What an instance has answered with status 200."""

    body: bytes
    json_length: str


def upstream_path(endpoint: str, path: str, score_path: str | None) -> str | None:
    """The model server's path of a client's ``path``, with its query: that of the scoring address
    itself is ``score_path``. None: there is none."""
    own, mark, query = path.partition("?")
    own = own.removeprefix(f"/endpoints/{endpoint}") or "/"
    if own != "/":
        return f"{own}{mark}{query}"
    return None if score_path is None else f"{score_path}{mark}{query}"


def send(
    addresses: Sequence[InstanceAddress], path: str, headers: Mapping[str, str], body: bytes, timeout_s: float
) -> Answer | None:
    """The answer of the first of ``addresses`` that can be reached; None: it is another one than
    200, too large or too late, or no instance can be reached."""
    deadline = time.monotonic() + timeout_s
    for address in addresses:
        connection = _connection(address, min(timeout_s, _CONNECT_TIMEOUT_S))
        try:
            connection.connect()
        except OSError:
            connection.close()
            continue
        try:
            return _ask(connection, path, headers, body, deadline)
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()
    return None


def _ask(
    connection: http.client.HTTPConnection, path: str, headers: Mapping[str, str], body: bytes, deadline: float
) -> Answer | None:
    _wait_until(connection, deadline)
    connection.request("POST", path, body, dict(headers))
    _wait_until(connection, deadline)
    # The response keeps the socket that the connection may give up.
    response, own = connection.sock, connection.getresponse()
    if own.status != 200:
        return None
    content = bytearray()
    while len(content) <= BODY_MAX:
        response.settimeout(_left(deadline))
        piece = own.read1(_PIECE)
        if not piece:
            # A body that ends before its announced length raises no error here.
            return None if own.length else Answer(bytes(content), own.getheader(JSON_LENGTH, ""))
        content += piece
    return None


def _wait_until(connection: http.client.HTTPConnection, deadline: float) -> None:
    connection.sock.settimeout(_left(deadline))


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("the answer takes too long")
    return left


def _connection(address: InstanceAddress, timeout_s: float) -> http.client.HTTPConnection:
    if isinstance(address, SocketAddress):
        return _SocketConnection(address.path, timeout_s)
    return http.client.HTTPConnection(address.host, address.port, timeout=timeout_s)


class _SocketConnection(http.client.HTTPConnection):
    """HTTP on a UNIX socket."""

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("triton", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
