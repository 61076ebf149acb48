"""The HTTPS server of a control plane.

Decides its limits, and how it reloads a renewed certificate. Must not know routes.
"""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

from amphitrite.controlplane.auth.certificates import Certificates
from amphitrite.controlplane.process import handshake_protocol, http_protocol
from amphitrite.controlplane.process.connection_limits import ConnectionLimitsProtocol
from amphitrite.controlplane.process.handshakes import AT_MOST, Handshakes, listen
from amphitrite.controlplane.settings.settings import Settings
from amphitrite.dataplane.machine import ports
from amphitrite.schemas.errors import Error

#: The host that stands for every address of this machine, IPv6 and IPv4.
ALL_ADDRESSES = "::"


def pending_at_most(open_files: int) -> int:
    """The number of connections before TLS: a quarter of ``open_files`` at most."""
    return min(AT_MOST, open_files // 4)


def server(settings: Settings, tls: Certificates, app: FastAPI, pending: Handshakes, open_files: int) -> uvicorn.Server:
    """A server to ``run`` in a thread with ``sockets``. Setting ``should_exit`` ends it within
    about a second.

    ``pending``: the same as for ``sockets``. ``open_files``: how many files and connections this
    process may have open. Connections after TLS take a quarter of them at most.
    """
    handshake_protocol.use()
    at_most = min(ConnectionLimitsProtocol.CONNECTIONS_MAX, open_files // 4)
    config = uvicorn.Config(
        app,
        http=type("Protocol", (ConnectionLimitsProtocol,), {"handshakes": pending, "CONNECTIONS_MAX": at_most}),
        # The only event loop that accepts by the socket's own method.
        loop="asyncio",
        host=settings.host,
        port=settings.port,
        ssl_certfile=str(tls.certificate_file),
        ssl_keyfile=str(tls.key_file),
        log_config=None,
        access_log=False,
        server_header=False,
        # An idle TLS connection counts as open until the client answers the close, which idle
        # clients do not.
        timeout_graceful_shutdown=1,
        timeout_keep_alive=75,
        h11_max_incomplete_event_size=http_protocol.HEAD_MAX,
    )
    return uvicorn.Server(config)


def sockets(settings: Settings, pending: Handshakes) -> list[socket.socket]:
    """The listening sockets, for each address of the host. For ``--host ::`` one for IPv6 and IPv4:
    the proxy takes both there, and the agent and ``ml`` connect by this machine's name, which is
    often an IPv4 address.

    Raises Error PortInUse or BadArgument.
    """
    host, port = settings.host, settings.port
    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        addresses = [(family, address) for family, _, _, _, address in infos]
        if host == ALL_ADDRESSES:
            addresses = [one for one in addresses if one[0] == socket.AF_INET6]
        return listen(addresses, pending)
    except OSError as exc:
        ports.require_free(host, port, "--port")
        raise Error("BadArgument", f"cannot listen on {host}:{port}: {exc.strerror}", target="host") from exc


def reloader(web: uvicorn.Server) -> Callable[[Certificates], None]:
    """Returns a function that makes new connections use a renewed certificate, without a
    restart."""

    def reload(tls: Certificates) -> None:
        if web.config.loaded and web.config.ssl is not None:
            web.config.ssl.load_cert_chain(tls.certificate_file, tls.key_file)

    return reload
