"""Starting the control plane of a home.

Decides what is checked before anything changes, what signals mean, and what goes on when this process ends. Must not
know what runs in between (``running``).
"""

from __future__ import annotations

import fcntl
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from amphitrite.controlplane.process import agent_process, lifetime, server_file
from amphitrite.controlplane.settings.home import Home
from amphitrite.controlplane.settings.settings import Settings
from amphitrite.dataplane.machine import garbage_collection, ports
from amphitrite.schemas.errors import Error


def start(settings: Settings, told: Callable[[], None] = lambda: None) -> bool:
    """Run until SIGTERM (only this process ends, everything goes on serving) or SIGINT (True: the caller is to stop
    the rest too). ``told`` is called once it runs. Raises Error, with nothing changed, when it cannot start."""
    stop, everything = threading.Event(), threading.Event()

    def ask(number: int, _frame: object) -> None:
        if number == signal.SIGINT:
            everything.set()
        stop.set()

    garbage_collection.limit_pauses()
    os.umask(0o077)  # Logs and sockets too, whichever of our processes makes them.
    signal.signal(signal.SIGTERM, ask)
    signal.signal(signal.SIGINT, ask)
    settings.home.require_shell_safe()
    _require_ports(settings)
    settings.home.create()
    with _lock(settings.home):
        lifetime.run(settings, stop, told)
    return everything.is_set()


def _require_ports(settings: Settings) -> None:
    """Both ports are free, or the scoring port is held by the data plane that this home left serving."""
    found = server_file.running(settings.home)
    if found is not None:
        raise Error(
            "Conflict",
            f"a control plane of {settings.home.root} runs already: pid {found['pid']}, {found['api_url']}",
            hint="ml server stop",
        )
    ports.require_free(settings.host, settings.port, "--port")
    if not settings.embedded:
        return
    serving = agent_process.listening(settings.home)
    if serving is None:
        ports.require_free(settings.host, settings.scoring_port, "--scoring-port")
    elif serving != f"{settings.host}:{settings.scoring_port}":
        raise Error(
            "Conflict",
            f"the data plane of {settings.home.root} still serves on {serving}",
            hint=f"start with that --host and --scoring-port, or first: ML_HOME={settings.home.root} ml server stop",
        )


@contextmanager
def _lock(home: Home) -> Iterator[None]:
    """One control plane for each home. The kernel frees the lock when the process ends, however it ends."""
    descriptor = os.open(home.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            message = f"another control plane of {home.root} is starting or ending"
            raise Error("Conflict", message, hint="ml server status") from exc
        yield
    finally:
        os.close(descriptor)
