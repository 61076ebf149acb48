"""What agents ask and report over HTTP."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from amphitrite.controlplane.core.observed import AgentReport
from amphitrite.dataplane.routing import Route, RoutingTable, Secret, from_json

TABLE = "/dataplane/v1/routing-table"
THIRD = RoutingTable(3, (Route("ep1", (Secret("k"),), ()),))


def test_a_newer_table_is_answered_at_once_an_older_one_is_not(world: Any) -> None:
    assert world.client.get(TABLE).status_code == 204
    world.services.feed.published(THIRD)
    assert from_json(world.client.get(f"{TABLE}?after=2&wait_s=60").json()) == THIRD
    assert world.client.get(f"{TABLE}?after=3").status_code == 204


def test_a_waiting_agent_is_answered_when_a_table_is_published(world: Any) -> None:
    with ThreadPoolExecutor(8) as agents:
        waiting = [agents.submit(world.client.get, f"{TABLE}?after=2&wait_s=60") for _ in range(8)]
        world.services.feed.published(RoutingTable(2))
        world.services.feed.published(THIRD)
        assert [answer.result(10).json()["version"] for answer in waiting] == [3] * 8


def test_an_ending_process_lets_everybody_go(world: Any) -> None:
    with ThreadPoolExecutor(1) as agents:
        waiting = agents.submit(world.client.get, f"{TABLE}?wait_s=60")
        world.services.feed.close()
        assert waiting.result(10).status_code == 204


def test_a_report_is_remembered_and_shown(world: Any) -> None:
    body = {
        "acknowledged_version": 3,
        "drained_version": 2,
        "rejected_version": None,
        "error": None,
        "envoy": {"pid": 7, "version": "1.36.2"},
    }
    assert world.client.put("/dataplane/v1/agents/one", json=body).status_code == 204
    now = world.now[0]
    assert world.services.agents.live(now) == (AgentReport("one", 3, 2, now),)
    assert world.wakes == [None]
    shown = {**body, "id": "one", "live": True, "seen_at": now}
    assert world.client.get("/dataplane/v1/agents").json() == {"value": [shown]}
