"""Agents' reports, in memory and on both databases: who is live, who is woken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from amphitrite.controlplane.agents.agent_registry import AgentRegistry, Agents, Proxy
from amphitrite.controlplane.core.observed.observations import AgentReport
from amphitrite.controlplane.store.reports import agent_reports
from amphitrite.controlplane.store.reports.agent_reports import StoredAgents
from amphitrite.controlplane.store.state.database import SqlStore

from .conftest import opened_store

FIRST = AgentReport("one", 1, 1, seen_at=100.0)
Keep = Callable[[Callable[[], None]], Agents]


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def keep(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Keep]:
    """Makes what keeps the reports, given whom to wake."""
    if request.param == "memory":
        yield AgentRegistry
        return
    with opened_store(request.param, tmp_path) as store:
        yield lambda wake: StoredAgents(store.database, wake)


@pytest.mark.parametrize(
    ("second", "wakes"),
    [
        (replace(FIRST, seen_at=105.0), 1),
        (replace(FIRST, seen_at=116.0), 2),
        (replace(FIRST, seen_at=105.0, acknowledged_version=2), 2),
        (replace(FIRST, seen_at=101.0, drained_version=2), 2),
        (replace(FIRST, seen_at=105.0, rejected_version=2, error="no"), 2),
        (replace(FIRST, seen_at=105.0, id="two"), 2),
    ],
    ids=["same", "back again", "acknowledged", "drained", "rejected", "another"],
)
def test_news_wake(keep: Keep, second: AgentReport, wakes: int) -> None:
    woken: list[None] = []
    agents = keep(lambda: woken.append(None))
    agents.report(FIRST)
    agents.report(second)
    assert len(woken) == wakes
    assert dict((report.id, report) for report, _ in agents.all_reports())[second.id] == second


def test_live_are_those_heard_of_lately(keep: Keep) -> None:
    agents = keep(lambda: None)
    agents.report(replace(FIRST, id="two", seen_at=110.0))
    agents.report(FIRST, Proxy(7, "1.36"))
    assert [report.id for report in agents.live(115.0)] == ["one", "two"]
    assert [report.id for report in agents.live(115.1)] == ["two"]
    assert agents.all_reports()[0] == (FIRST, Proxy(7, "1.36"))
    agents.report(replace(FIRST, id="three", seen_at=3701.0))
    assert [report.id for report, _ in agents.all_reports()] == ["three", "two"]


def test_who_says_goodbye_is_not_waited_for(keep: Keep) -> None:
    woken: list[None] = []
    agents = keep(lambda: woken.append(None))
    agents.report(FIRST)
    agents.forget("one")
    agents.forget("one")
    assert agents.live(100.0) == () and len(woken) == 2


def test_a_report_that_says_nothing_new_is_not_written(store: SqlStore) -> None:
    agents = StoredAgents(store.database, lambda: None)
    agents.report(FIRST)
    just_before = 100.0 + agent_reports.REFRESH_S - 0.1
    agents.report(replace(FIRST, seen_at=just_before))
    assert agents.all_reports()[0][0].seen_at == 100.0
    agents.report(replace(FIRST, seen_at=104.0))
    assert agents.all_reports()[0][0].seen_at == 104.0


def test_what_one_control_plane_hears_the_others_know(store: SqlStore) -> None:
    one, other = (StoredAgents(store.database, lambda: None) for _ in range(2))
    one.report(replace(FIRST, acknowledged_version=5))
    other.report(replace(FIRST, acknowledged_version=6, seen_at=101.0))
    one.report(replace(FIRST, acknowledged_version=5, seen_at=102.0))
    assert other.live(103.0) == (replace(FIRST, acknowledged_version=5, seen_at=102.0),)
