"""The gRPC server for callouts: one event loop in one thread, on a UNIX socket.

Decides how services are started and stopped. A callout may stay open for as long as its request, so
each is a task of the loop, and none holds a thread. Must not know what a service answers.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import grpc  # type: ignore[import-untyped]
import grpc.aio  # type: ignore[import-untyped]

from amphitrite.dataplane.machine.json_log import log

_START_TIMEOUT_S = 10.0
_STOP_TIMEOUT_S = 2.0
#: What a message has besides a body.
_ENVELOPE_BYTES = 256 * 1024


class Service(Protocol):
    """One gRPC service. Its handlers run in the loop that ``begin`` is called with."""

    @property
    def name(self) -> str: ...

    def handlers(self) -> Mapping[str, grpc.RpcMethodHandler]:
        """The handlers by method."""

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Called in the loop's thread, before the first callout."""


class CalloutServer:
    """Serves ``services`` from ``start`` to ``stop``. Callouts that are open at ``stop`` are ended;
    Envoy lets their requests go on."""

    def __init__(self, socket: Path, services: tuple[Service, ...], body_bytes: int = 0) -> None:
        """``body_bytes``: of the largest body that one message may have."""
        self._socket, self._services = socket, services
        self._options = [("grpc.max_receive_message_length", body_bytes + _ENVELOPE_BYTES)]
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread: threading.Thread | None = None

    def start(self, start_thread: Callable[[str, Callable[[], None]], threading.Thread]) -> None:
        """Returns when the socket is there."""
        listening = threading.Event()
        self._thread = start_thread("callouts", lambda: asyncio.run(self._run(listening)))
        if not listening.wait(_START_TIMEOUT_S):
            log("error", "callouts are not served yet", socket=str(self._socket))

    def stop(self) -> None:
        if self._loop is None or self._stop is None or self._thread is None:
            return
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_STOP_TIMEOUT_S)
        self._socket.unlink(missing_ok=True)

    async def _run(self, listening: threading.Event) -> None:
        self._stop, self._loop = asyncio.Event(), asyncio.get_running_loop()
        server: Any = grpc.aio.server(options=self._options)
        for service in self._services:
            service.begin(self._loop)
            handler = grpc.method_handlers_generic_handler(service.name, service.handlers())
            server.add_generic_rpc_handlers((handler,))
        self._socket.unlink(missing_ok=True)
        server.add_insecure_port(f"unix:{self._socket}")
        await server.start()
        listening.set()
        await self._stop.wait()
        await server.stop(grace=None)
