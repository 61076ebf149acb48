"""The host names and URLs of this machine.

Decides the host in the URLs for clients, and what a certificate for a listening address must cover.
Must not know certificates or sockets.
"""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

import psutil

LOOPBACK = ("localhost", "127.0.0.1", "::1")


def url(host: str, port: int) -> str:
    """``https://host:port`` of a server that listens on ``host``.

    A wildcard address becomes this machine's name, because no certificate is valid for 0.0.0.0.
    """
    if _is_wildcard(host):
        return f"https://{socket.gethostname()}:{port}"
    return f"https://[{host}]:{port}" if isinstance(_address(host), IPv6Address) else f"https://{host}:{port}"


def host(url: str) -> str:
    """The host of ``https://host[:port][/path]``, an IPv6 address without its brackets."""
    return urlsplit(url).hostname or ""


def url_for_host(url: str, host: str) -> str:
    """``https://host[:port]/`` with the port of ``url``."""
    port = urlsplit(url).port
    return f"https://{host}/" if port is None else f"https://{host}:{port}/"


def certificate_hosts(host: str, extra: tuple[str, ...] = ()) -> tuple[str, ...]:
    """What a certificate must name: the loopback names, ``host`` (this machine's name for a
    wildcard) and ``extra``."""
    return tuple(sorted({*LOOPBACK, *extra, socket.gethostname() if _is_wildcard(host) else host}))


def machine_hosts(host: str) -> tuple[str, ...]:
    """What a certificate should name too, though nobody has chosen it: this machine's name, and all
    interface addresses if ``host`` is a wildcard. They may change with each network."""
    return tuple(sorted({socket.gethostname(), *(_interface_addresses() if _is_wildcard(host) else ())}))


def _is_wildcard(host: str) -> bool:
    address = _address(host)
    return address is not None and address.is_unspecified


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _interface_addresses() -> list[str]:
    """The addresses of all interfaces, without link-local ones, which change and need a zone."""
    result = []
    for addresses in psutil.net_if_addrs().values():
        for entry in addresses:
            address = _address(entry.address)
            if address is not None and not address.is_link_local:
                result.append(str(address))
    return result
