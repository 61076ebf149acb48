"""Which agent is answered when. (Their reports: ``store/test_agent_reports.py``.)"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from amphitrite.controlplane.agents.agent_registry import TableFeed
from amphitrite.dataplane.table.routing_table import RoutingTable


def test_waiting_ends_with_a_newer_table_or_with_time_or_with_the_process() -> None:
    feed = TableFeed()
    assert feed.wait(0, 0) is None
    feed.published(RoutingTable(4))
    assert feed.wait(3, 60) == RoutingTable(4)
    assert feed.wait(4, 0) is None
    with ThreadPoolExecutor(2) as pool:
        newer, ended = pool.submit(feed.wait, 4, 60), pool.submit(feed.wait, 5, 60)
        feed.published(RoutingTable(5))
        assert newer.result(60) == RoutingTable(5)
        feed.close()
        assert ended.result(60) is None
    assert feed.wait(5, 60) is None
