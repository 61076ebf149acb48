"""How a proxy leaves without a request lost.

Decides the order: first it calls itself unhealthy, so that load balancers and the kubelet choose others, and ends each
connection with its next answer; after ``linger_s`` it accepts no more connections; then it waits until nothing is in
flight. Must not end the process: that is the caller's.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol

from amphitrite.dataplane.machine.json_log import log
from amphitrite.schemas.errors import Error

_POLL_S = 0.02
#: A request that was on its way when the listener closed arrives within this.
_QUIET_S = 0.2


class Proxy(Protocol):
    """What is needed of ``admin.Admin``. Each method raises Error when the proxy does not answer."""

    def fail_health(self) -> None: ...
    def close_listener(self) -> None: ...
    def requests_in_flight(self) -> int: ...
    def connections(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Departure:
    """``linger_s``: how long new connections are still taken, so that whoever balances load has noticed. ``grace_s``:
    the longest that requests in flight are waited for after that."""

    linger_s: float = 0.0
    grace_s: float = 0.0


def depart(proxy: Proxy, departure: Departure) -> None:
    """Return when nothing is in flight, or the time is over. A proxy that does not answer is only logged."""
    try:
        proxy.fail_health()
        time.sleep(departure.linger_s)
        proxy.close_listener()
        _await_quiet(proxy, time.monotonic() + departure.grace_s)
    except Error as error:
        log("warning", "envoy could not be drained", error=error.message)


def _await_quiet(proxy: Proxy, deadline: float) -> None:
    quiet_since: float | None = None
    while (now := time.monotonic()) < deadline and proxy.connections():
        if proxy.requests_in_flight():
            quiet_since = None
        elif quiet_since is None:
            quiet_since = now
        elif now - quiet_since >= _QUIET_S:
            return
        time.sleep(_POLL_S)
    left = proxy.requests_in_flight()
    if left:
        log("warning", "requests are cut off: they took longer than the grace period", requests=left)
