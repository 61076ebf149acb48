"""How Envoy is drained without a lost request.

Decides the order. First Envoy fails its health check, so that load balancers and the kubelet choose
others, and closes each connection with its next response. After ``linger_s`` it accepts no more
connections. Then the requests in flight are waited for. Must not end the process: the caller does.
"""

from __future__ import annotations

import time
from typing import Protocol

from amphitrite.dataplane.machine.json_log import log
from amphitrite.dataplane.proxy.proxy import GracefulShutdown
from amphitrite.schemas.errors import Error

_POLL_S = 0.02
#: A request that was on its way when the listener closed arrives within this time.
_IDLE_S = 0.2


class Drainable(Protocol):
    """The part of ``AdminClient`` that draining needs. Each method raises Error when Envoy does not
    answer."""

    def fail_health_checks(self) -> None: ...
    def drain_listeners(self) -> None: ...
    def requests_in_flight(self) -> int: ...
    def connections(self) -> int: ...


def drain(envoy: Drainable, shutdown: GracefulShutdown) -> None:
    """Return when nothing is in flight or ``shutdown.grace_s`` is over. An Envoy that does not
    answer is only logged."""
    try:
        envoy.fail_health_checks()
        time.sleep(shutdown.linger_s)
        envoy.drain_listeners()
        _wait_until_idle(envoy, time.monotonic() + shutdown.grace_s)
    except Error as error:
        log("warning", "envoy could not be drained", error=error.message)


def _wait_until_idle(envoy: Drainable, deadline: float) -> None:
    idle_since: float | None = None
    while (now := time.monotonic()) < deadline and envoy.connections():
        if envoy.requests_in_flight():
            idle_since = None
        elif idle_since is None:
            idle_since = now
        elif now - idle_since >= _IDLE_S:
            return
        time.sleep(_POLL_S)
    remaining = envoy.requests_in_flight()
    if remaining:
        log("warning", "requests are cut off: they took longer than the grace period", requests=remaining)
