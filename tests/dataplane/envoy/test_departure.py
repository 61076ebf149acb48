"""The order in which a proxy leaves, on a proxy that only counts."""

from __future__ import annotations

import pytest

from amphitrite.dataplane.envoy.process.graceful_shutdown import drain
from amphitrite.dataplane.proxy.proxy import GracefulShutdown
from amphitrite.schemas.errors import Error


class CountingProxy:
    """Has ``busy`` requests, one of which ends with each look, and connections until then (``idle``
    ones for ever)."""

    def __init__(self, busy: int, idle: int = 0, away: bool = False) -> None:
        self.busy, self.idle, self.away = busy, idle, away
        self.calls: list[str] = []

    def fail_health_checks(self) -> None:
        if self.away:
            raise Error("RuntimeUnavailable", "away")
        self.calls.append("fail_health")

    def drain_listeners(self) -> None:
        self.calls.append("close_listener")

    def requests_in_flight(self) -> int:
        self.calls.append(f"{self.busy} in flight")
        self.busy = max(0, self.busy - 1)
        return self.busy

    def connections(self) -> int:
        return self.busy + self.idle


def test_health_fails_then_the_listener_closes_then_requests_end() -> None:
    proxy = CountingProxy(busy=3)
    drain(proxy, GracefulShutdown(0.01, 10.0))
    assert proxy.calls[:3] == ["fail_health", "close_listener", "3 in flight"]
    assert proxy.busy == 0


def test_idle_connections_do_not_keep_it() -> None:
    proxy = CountingProxy(busy=0, idle=5)
    drain(proxy, GracefulShutdown(0.0, 60.0))
    assert proxy.calls[-1] == "0 in flight"


def test_time_runs_out_and_what_is_lost_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    drain(CountingProxy(busy=1000), GracefulShutdown(0.0, 0.05))
    assert "requests are cut off" in capsys.readouterr().err


def test_a_proxy_that_is_away_is_no_obstacle(capsys: pytest.CaptureFixture[str]) -> None:
    drain(CountingProxy(busy=1, away=True), GracefulShutdown(0.0, 60.0))
    assert "could not be drained" in capsys.readouterr().err
