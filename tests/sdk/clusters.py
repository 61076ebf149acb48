"""A server with an attached cluster, for what only needs its replies: nothing runs, and everything
succeeds at once.

Decides what that server has: the model ``m`` and the compute ``k8s``. Must not know who asks it.
The real API over the real store and TLS; the reconciler is ``World.settle``.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from amphitrite.controlplane.core.desired.compute_clusters import Compute, PodShape
from amphitrite.controlplane.process.app import create_app
from amphitrite.dataplane.table.routing_table import Secret

from ..controlplane.api.conftest import World, opened

SMALL = PodShape("small", (("cpu", "1"), ("memory", "1Gi")))


@contextmanager
def served(root: Path, certificates: Path) -> Iterator[dict[str, str]]:
    """What its clients need: ``url`` and ``token``. ``certificates``: those of another server, for
    a process trusts one authority at a time."""
    with opened(root / "home") as world:
        world.now[0] = time.time()
        world.model()
        attached = Compute("k8s", "models", Secret("apiVersion: v1"), (SMALL,), default_instance_type="small")
        world.store.put_compute(attached, now=world.now[0])
        config = uvicorn.Config(
            create_app(world.services),
            ssl_certfile=str(certificates / "server.pem"),
            ssl_keyfile=str(certificates / "server.key"),
            log_config=None,
            access_log=False,
        )
        server, ending = uvicorn.Server(config), threading.Event()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            threads = [
                threading.Thread(target=server.run, args=([listener],)),
                threading.Thread(target=_settle, args=(world, ending)),
            ]
            for thread in threads:
                thread.start()
            address = f"https://127.0.0.1:{listener.getsockname()[1]}"
            try:
                yield {"url": address, "token": world.services.credentials.token.reveal()}
            finally:
                server.should_exit = True
                ending.set()
                for thread in threads:
                    thread.join(60)


def _settle(world: World, ending: threading.Event) -> None:
    seen = 0
    while not ending.wait(0.02):
        if len(world.wakes) > seen:
            seen = len(world.wakes)
            world.settle()
