"""Certificates that are due are renewed and taken into use; model files that are in use are kept."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn

from amphitrite.controlplane import certificates
from amphitrite.controlplane.certificates import LEAF_DAYS, Certificates
from amphitrite.controlplane.home import Home
from amphitrite.controlplane.maintenance import Maintenance
from amphitrite.controlplane.runtimes.memory import MemoryRuntime
from amphitrite.controlplane.server import reloader
from amphitrite.controlplane.store.database import SqlStore, open_store
from amphitrite.controlplane.store.models import ModelStore

HOSTS = ("localhost", "127.0.0.1")
DAY = 86_400.0


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.create()
    return home


@pytest.fixture
def store(home: Home) -> Iterator[SqlStore]:
    one = open_store(home.database)
    yield one
    one.close()


def test_a_certificate_that_is_due_is_renewed_once_and_handed_over(home: Home, store: SqlStore) -> None:
    handed: list[Certificates] = []
    runtime, models = MemoryRuntime(time.time), ModelStore(store.database, home.models)
    maintenance = Maintenance(home, HOSTS, store, models, runtime, reload=handed.append)
    now = time.time()
    for day in (0, 1, LEAF_DAYS - 1, LEAF_DAYS):
        maintenance.renew(now + day * DAY)
    assert [round((tls.not_after - now) / DAY) for tls in handed] == [2 * LEAF_DAYS - 1]


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


async def _nothing(scope: object, receive: object, send: object) -> None:
    """An app that is never asked."""


def _certificate(port: int, tls: Certificates) -> bytes:
    """What the server shows to a client that trusts our authority. The listener queues it until the server is up."""
    trust = ssl.create_default_context(cafile=str(tls.ca_file))
    with (
        socket.create_connection(("127.0.0.1", port), timeout=30) as plain,
        trust.wrap_socket(plain, server_hostname="localhost") as secure,
    ):
        shown = secure.getpeercert(binary_form=True)
    assert shown
    return shown
