"""Questions to a running Triton over its HTTP API: is it live, is every model ready, what is it?

Decides what counts as an answer. Must not know how often one asks. Imports little besides the
standard library, so that a probe starts fast. Source: Triton's document "HTTP/REST and GRPC
Protocol".

Each function raises OSError if this process could not ask (``own_faults``): it has no descriptor
left, for example. That says nothing about the server.
"""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

from amphitrite.dataplane.machine import own_faults
from amphitrite.dataplane.table.routing_table import InstanceAddress, SocketAddress

#: Whether a connection leads to whom it should; asked before anything is sent.
Trusts = Callable[[socket.socket], bool]


def anybody(connection: socket.socket) -> bool:
    """Trusts every server."""
    return True


def live(
    address: InstanceAddress, timeout_s: float, path: str = "/v2/health/live", *, trusts: Trusts = anybody
) -> bool:
    """Whether the server answers at all. ``timeout_s`` limits the answer."""
    return all_ok(address, [path], timeout_s, trusts=trusts)


def ready(address: InstanceAddress, models: Sequence[str], timeout_s: float, *, trusts: Trusts = anybody) -> bool:
    """Whether the server and each of ``models`` are ready for inference. ``timeout_s`` limits each
    answer."""
    paths = ["/v2/health/ready", *(f"/v2/models/{quote(m, safe='')}/ready" for m in models)]
    return all_ok(address, paths, timeout_s, trusts=trusts)


def version(address: InstanceAddress, timeout_s: float, *, trusts: Trusts = anybody) -> str | None:
    """The server's version, such as ``2.51.0``; None: no answer."""
    answer = _json(address, "/v2", timeout_s, trusts)
    return str(answer["version"]) if answer and "version" in answer else None


def backend(address: InstanceAddress, model: str, timeout_s: float) -> str | None:
    """The backend that serves ``model``, such as ``onnxruntime`` or ``python``; None: an
    ``ensemble``, which has none, or no answer."""
    answer = _json(address, f"/v2/models/{quote(model, safe='')}/config", timeout_s, anybody)
    return str(answer.get("backend") or answer.get("platform") or "") or None if answer else None


def all_ok(address: InstanceAddress, paths: Sequence[str], timeout_s: float, *, trusts: Trusts = anybody) -> bool:
    """Whether a GET of each of ``paths`` is answered with 200. ``timeout_s`` limits each answer."""
    connection = _Connection(address, timeout_s, trusts)
    try:
        for path in paths:
            connection.request("GET", path)
            response = connection.getresponse()
            response.read()
            if response.status != http.HTTPStatus.OK:
                return False
    except (OSError, http.client.HTTPException) as exc:
        if own_faults.is_own(exc):
            raise
        return False
    finally:
        connection.close()
    return True


def _json(address: InstanceAddress, path: str, timeout_s: float, trusts: Trusts) -> dict[str, Any] | None:
    connection = _Connection(address, timeout_s, trusts)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        value = json.loads(response.read()) if response.status == http.HTTPStatus.OK else None
    except (OSError, http.client.HTTPException, ValueError) as exc:
        if own_faults.is_own(exc):
            raise
        return None
    finally:
        connection.close()
    return value if isinstance(value, dict) else None


class _Connection(http.client.HTTPConnection):
    """To a port or a UNIX socket, and to nobody but whom ``trusts`` accepts."""

    def __init__(self, address: InstanceAddress, timeout_s: float, trusts: Trusts) -> None:
        self._path = address.path if isinstance(address, SocketAddress) else None
        self._trusts = trusts
        host, port = ("localhost", 80) if isinstance(address, SocketAddress) else (address.host, address.port)
        super().__init__(host, port, timeout=timeout_s)

    def connect(self) -> None:
        if self._path is None:
            super().connect()
        else:
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(self.timeout)
            self.sock.connect(self._path)
        if not self._trusts(self.sock):
            raise http.client.HTTPException("somebody else listens there")
