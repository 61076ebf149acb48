"""On which addresses the API listens.

Decides that ``::`` means both families. Must not know routes.
"""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from amphitrite.controlplane.process import https_server
from amphitrite.controlplane.settings.home import Home
from amphitrite.controlplane.settings.settings import Settings

from ...ports import free_port


def test_all_addresses_are_of_both_families(tmp_path: Path) -> None:
    if not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    everywhere = Settings(Home(tmp_path), host="::", port=free_port())
    opened = https_server.sockets(everywhere)
    assert opened is not None
    with opened[0]:
        for address in ("127.0.0.1", "::1"):
            socket.create_connection((address, everywhere.port), timeout=10).close()


def test_one_address_is_left_to_the_server(tmp_path: Path) -> None:
    assert https_server.sockets(Settings(Home(tmp_path))) is None
