"""Starts the control plane of a home.

Decides what is checked before anything changes, what signals mean, and what keeps running when this
process ends. Must not know what runs in between (``lifetime``).
"""

from __future__ import annotations

import fcntl
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from amphitrite.controlplane.process import agent_process, lifetime, server_file, threads
from amphitrite.controlplane.settings.home import Home
from amphitrite.controlplane.settings.settings import Settings
from amphitrite.dataplane.machine import garbage_collection, ports
from amphitrite.schemas.errors import Error


def start(settings: Settings, on_running: Callable[[], None] = lambda: None) -> bool:
    """Runs until SIGTERM or SIGINT. Returns True after SIGINT: the caller then stops the data plane
    too.

    After SIGTERM only this process ends. ``on_running`` is called once it runs. Raises Error, with
    nothing changed, if it cannot start.
    """
    stop, everything = threading.Event(), threading.Event()

    def ask(number: int, _frame: object) -> None:
        if number == signal.SIGINT:
            everything.set()
        stop.set()

    threading.excepthook = threads.log_unhandled
    garbage_collection.limit_pauses()
    os.umask(0o077)  # For logs and sockets of all our processes.
    signal.signal(signal.SIGTERM, ask)
    signal.signal(signal.SIGINT, ask)
    settings.home.require_shell_safe()
    _require_ports(settings)
    settings.home.create()
    with _lock(settings.home):
        lifetime.run(settings, stop, on_running)
    return everything.is_set()


def _require_ports(settings: Settings) -> None:
    """Both ports must be free, or the scoring port used by this home's own data plane."""
    other = server_file.running(settings.home)
    if other is not None:
        raise Error(
            "Conflict",
            f"a control plane of {settings.home.root} is already running: pid {other['pid']}, {other['api_url']}",
            hint="stop it with `ml server stop`",
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
            f"the data plane of {settings.home.root} is still serving on {serving}",
            hint=f"use that --host and --scoring-port, or stop it first: ML_HOME={settings.home.root} ml server stop",
        )


@contextmanager
def _lock(home: Home) -> Iterator[None]:
    """Allows one control plane for each home. The kernel releases the lock when the
    process ends."""
    descriptor = os.open(home.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            message = f"another control plane of {home.root} is starting or stopping"
            raise Error("Conflict", message, hint="check it with `ml server status`") from exc
        yield
    finally:
        os.close(descriptor)
