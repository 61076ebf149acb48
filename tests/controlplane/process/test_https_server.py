"""On which addresses the API listens.

Decides that ``::`` means both families, and a name each of its addresses. Must not know routes.
"""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path

import psutil
import pytest

from amphitrite.controlplane.process import https_server
from amphitrite.controlplane.process.handshakes import Handshakes
from amphitrite.controlplane.settings.home import Home
from amphitrite.controlplane.settings.settings import Settings
from amphitrite.schemas.errors import Error

from ...ports import free_port


@pytest.mark.parametrize(
    ("host", "reached"),
    [("::", ("127.0.0.1", "::1")), ("127.0.0.1", ("127.0.0.1",)), ("localhost", ("localhost",))],
)
def test_every_address_of_the_host(host: str, reached: tuple[str, ...], tmp_path: Path) -> None:
    if ":" in host and not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    settings = Settings(Home(tmp_path), host=host, port=free_port())
    with contextlib.ExitStack() as stack:
        for one in https_server.sockets(settings, Handshakes()):
            stack.enter_context(one)
        for address in reached:
            socket.create_connection((address, settings.port), timeout=10).close()


def test_a_port_that_somebody_has_taken_meanwhile_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", free_port())) as other:
        port = other.getsockname()[1]
        with pytest.raises(Error, match=f"port {port} on 127.0.0.1 is in use by {psutil.Process().name()}"):
            https_server.sockets(Settings(Home(tmp_path), port=port), Handshakes())


@pytest.mark.parametrize(("open_files", "at_most"), [(65_536, 512), (1_024, 256), (256, 64)])
def test_handshakes_take_a_quarter_of_the_descriptors(open_files: int, at_most: int) -> None:
    assert https_server.pending_at_most(open_files) == at_most
