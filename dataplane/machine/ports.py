"""Whether a process can listen on an address, tested before anything is changed.

Decides the errors for a port that is in use. Must not know who wants to listen.
"""

from __future__ import annotations

import errno
import socket

import psutil

from amphitrite.schemas.errors import Error


def require_free(host: str, port: int, option: str) -> None:
    """Raise Error("PortInUse"), which names the port and ``option``, when another program listens
    there. Raise Error("BadArgument") for a host that is not an address of this machine."""
    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as exc:
        raise Error("BadArgument", f"host {host!r} is not an address of this machine", target="host") from exc
    for family, kind, protocol, _, address in infos:
        with socket.socket(family, kind, protocol) as probe:
            # As uvicorn and Envoy do, so that connections in TIME_WAIT do not matter.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(address)
                probe.listen(1)
            except OSError as exc:
                raise _refusal(exc, host, port, option) from exc


def in_use(host: str, port: int, option: str) -> Error:
    """The error for a port at which another program listens, named if the kernel tells us."""
    program = _listener(port)
    stop = "stop that program" if program else "stop the program; root can see which one it is"
    return Error(
        "PortInUse",
        f"port {port} on {host} is in use by {program or 'another program'}",
        target=f"{host}:{port}",
        hint=f"choose another port with {option}, or {stop}",
    )


def _refusal(cause: OSError, host: str, port: int, option: str) -> Error:
    if cause.errno == errno.EADDRINUSE:
        return in_use(host, port, option)
    hints = {
        errno.EACCES: f"ports below 1024 need root: choose another port with {option}",
        errno.EADDRNOTAVAIL: "give --host an address of this machine, or 0.0.0.0 for all of them",
    }
    message = f"cannot listen on {host}:{port}: {cause.strerror}"
    return Error("BadArgument", message, target=f"{host}:{port}", hint=hints.get(cause.errno or 0))


def _listener(port: int) -> str:
    """Name and pid of the program that listens on ``port``; empty if the kernel does not tell us,
    as of another user's."""
    try:
        for connection in psutil.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr[1:] == (port,) and connection.pid:
                return f"{psutil.Process(connection.pid).name()} (pid {connection.pid})"
    except (psutil.Error, OSError):
        return ""
    return ""
