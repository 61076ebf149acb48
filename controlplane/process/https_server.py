"""The HTTPS server of a control plane.

Decides its limits, and how it reloads a renewed certificate. Must not know routes.
"""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

from amphitrite.controlplane.auth.certificates import Certificates
from amphitrite.controlplane.process import http_protocol
from amphitrite.controlplane.process.connection_limits import ConnectionLimitsProtocol
from amphitrite.controlplane.settings.settings import Settings

#: The host that stands for every address of this machine, IPv6 and IPv4.
ALL_ADDRESSES = "::"
#: Connections that wait to be accepted, as uvicorn's own socket has it.
BACKLOG = 2048


def server(settings: Settings, tls: Certificates, app: FastAPI) -> uvicorn.Server:
    """A server to ``run`` in a thread; setting ``should_exit`` ends it within about a second."""
    config = uvicorn.Config(
        app,
        http=ConnectionLimitsProtocol,
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


def sockets(settings: Settings) -> list[socket.socket] | None:
    """What ``uvicorn.Server.run`` takes: for ``--host ::`` a listening socket for IPv6 and IPv4.
    None for any other host, for which uvicorn opens its own.

    asyncio would open one for IPv6 alone. The proxy takes both on ``::``, and the agent and ``ml``
    connect by this machine's name, which is often an IPv4 address.
    """
    if settings.host != ALL_ADDRESSES:
        return None
    address = (settings.host, settings.port)
    return [socket.create_server(address, family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG)]


def reloader(web: uvicorn.Server) -> Callable[[Certificates], None]:
    """Returns a function that makes new connections use a renewed certificate, without a
    restart."""

    def reload(tls: Certificates) -> None:
        if web.config.loaded and web.config.ssl is not None:
            web.config.ssl.load_cert_chain(tls.certificate_file, tls.key_file)

    return reload
