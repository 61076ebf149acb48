"""Certificates and credentials that are renewed are taken into use."""

from __future__ import annotations

import gc
import socket
import ssl
import threading
import time
from pathlib import Path

import pytest
import uvicorn

from amphitrite.controlplane.auth import certificates
from amphitrite.controlplane.auth.certificates import LEAF_DAYS, Certificates
from amphitrite.controlplane.auth.renewal import Renewal
from amphitrite.controlplane.process.https_server import reloader
from amphitrite.controlplane.settings.home import Home

from ...certificate import ends_at

HOSTS = ("localhost", "127.0.0.1")
DAY = 86_400.0


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.create()
    return home


def test_a_certificate_that_is_due_is_renewed_once_and_handed_over(home: Home) -> None:
    handed: list[Certificates] = []
    renewing = Renewal(lambda now: certificates.ensure(home, HOSTS, now), handed.append, lambda: False, 1.0)
    now = time.time()
    for day in (0, 1, LEAF_DAYS - 1, LEAF_DAYS):
        renewing.certificates(now + day * DAY)
    assert [round((ends_at(tls.certificate_file) - now) / DAY) for tls in handed] == [2 * LEAF_DAYS - 1]


# Python 3.10 leaves a TLS transport open whose client has reset the connection.
@pytest.mark.filterwarnings("ignore:unclosed transport:ResourceWarning")
def test_new_connections_get_the_renewed_certificate(home: Home) -> None:
    tls = certificates.ensure(home, HOSTS, time.time() - (LEAF_DAYS - 10) * DAY)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        config = uvicorn.Config(
            _nothing,
            ssl_certfile=str(tls.certificate_file),
            ssl_keyfile=str(tls.key_file),
            log_config=None,
            lifespan="off",
        )
        web = uvicorn.Server(config)
        thread = threading.Thread(target=web.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            before = _certificate(port, tls)
            reloader(web)(certificates.ensure(home, HOSTS, time.time()))
            assert _certificate(port, tls) != before
        finally:
            web.should_exit = True
            thread.join()
            gc.collect()  # What warns does so here, and not in another test.


async def _nothing(scope: object, receive: object, send: object) -> None:
    """An app that is never asked."""


def _certificate(port: int, tls: Certificates) -> bytes:
    """What the server shows to a client that trusts our authority. The listener queues it until the
    server is up."""
    trust = ssl.create_default_context(cafile=str(tls.ca_file))
    with (
        socket.create_connection(("127.0.0.1", port), timeout=30) as plain,
        trust.wrap_socket(plain, server_hostname="localhost") as secure,
    ):
        shown = secure.getpeercert(binary_form=True)
    assert shown
    return shown
