"""Who is live, who is woken, who is answered."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from amphitrite.controlplane.agents import AgentRegistry, Proxy, TableFeed
from amphitrite.controlplane.core.observed import AgentReport
from amphitrite.dataplane.routing import RoutingTable

FIRST = AgentReport("one", 1, 1, seen_at=100.0)


@pytest.mark.parametrize(
    ("second", "wakes"),
    [
        (replace(FIRST, seen_at=105.0), 1),
        (replace(FIRST, seen_at=116.0), 2),
        (replace(FIRST, seen_at=105.0, acknowledged_version=2), 2),
        (replace(FIRST, seen_at=105.0, drained_version=2), 2),
        (replace(FIRST, seen_at=105.0, rejected_version=2, error="no"), 2),
        (replace(FIRST, seen_at=105.0, id="two"), 2),
    ],
    ids=["same", "back again", "acknowledged", "drained", "rejected", "another"],
)
def test_news_wake(second: AgentReport, wakes: int) -> None:
    woken: list[None] = []
    registry = AgentRegistry(lambda: woken.append(None))
    registry.report(FIRST)
    registry.report(second)
    assert len(woken) == wakes


def test_live_are_those_heard_of_lately() -> None:
    registry = AgentRegistry(lambda: None)
    registry.report(replace(FIRST, id="two", seen_at=110.0))
    registry.report(FIRST, Proxy(7, "1.36"))
    assert [report.id for report in registry.live(115.0)] == ["one", "two"]
    assert [report.id for report in registry.live(115.1)] == ["two"]
    assert registry.known()[0] == (FIRST, Proxy(7, "1.36"))
    registry.report(replace(FIRST, id="three", seen_at=3701.0))
    assert [report.id for report, _ in registry.known()] == ["three", "two"]


def test_waiting_ends_with_a_newer_table_or_with_time_or_with_the_process() -> None:
    feed = TableFeed()
    assert feed.wait(0, 0) is None
    feed.published(RoutingTable(4))
    assert feed.wait(3, 60) == RoutingTable(4)
    assert feed.wait(4, 0) is None
    with ThreadPoolExecutor(2) as pool:
        newer, ended = pool.submit(feed.wait, 4, 60), pool.submit(feed.wait, 5, 60)
        feed.published(RoutingTable(5))
        assert newer.result(10) == RoutingTable(5)
        feed.close()
        assert ended.result(10) is None
    assert feed.wait(5, 60) is None
