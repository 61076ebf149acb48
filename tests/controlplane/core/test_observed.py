"""Reports of proxies whose tables are of another history: a store that is new, or was restored from
a backup."""

from __future__ import annotations

from amphitrite.controlplane.core.observed.observations import AgentReport, newest_version, of_this_history


def test_the_newest_version_that_a_proxy_has_seen() -> None:
    assert newest_version([]) == 0
    reports = [
        AgentReport("a", 4, 4, 0.0),
        AgentReport("b", 3, 2, 0.0, rejected_version=6),
        AgentReport("c", 5, 1, 0.0),
    ]
    assert newest_version(reports) == 6


def test_what_an_agent_has_of_another_history_acknowledges_nothing() -> None:
    report = AgentReport("a", 9, 8, 1.0)
    assert of_this_history(report, 9) == report
    assert of_this_history(report, 8) == AgentReport("a", 0, 0, 1.0)
