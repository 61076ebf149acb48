"""Ports for servers that a test starts after it has chosen their port.

Decides which port nobody takes in between. Must not know who listens there.

The kernel gives a port of its own range to each connection that goes out, and a suite makes
thousands of them. So a port that ``bind(0)`` has found free may be taken a moment later. These
ports lie below that range, and each process of a run has its own part of them.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import socket
from collections.abc import Iterator
from pathlib import Path

__all__ = ["free_port", "free_ports"]

LOOPBACK = "127.0.0.1"
#: Kubernetes gives the node ports of services from here on.
_NODE_PORTS = 30_000
_FIRST = 12_000
#: As many processes as a run may have, each with a part of its own.
_PARTS = 16


def free_port(host: str = LOOPBACK) -> int:
    """A port that nobody listens on, and that no other call has given."""
    return next(port for port in _CHOICES if _free(host, port))


def free_ports(count: int) -> list[int]:
    """``count`` ports like ``free_port``'s."""
    return [free_port() for _ in range(count)]


def _choices() -> Iterator[int]:
    """The ports of this process's part, for ever, from a chance one on: another run may be at its
    first."""
    local = Path("/proc/sys/net/ipv4/ip_local_port_range")
    above = min(_NODE_PORTS, int(local.read_text().split()[0])) if local.exists() else _NODE_PORTS
    digits = re.findall(r"\d+", os.environ.get("PYTEST_XDIST_WORKER", ""))
    size = (above - _FIRST) // _PARTS
    start = _FIRST + (int(digits[0]) + 1 if digits else 0) % _PARTS * size
    ports = list(range(start, start + size))
    shift = random.SystemRandom().randrange(size)
    return itertools.cycle(ports[shift:] + ports[:shift])


def _free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


_CHOICES = _choices()
