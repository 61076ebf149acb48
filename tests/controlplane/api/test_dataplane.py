"""What agents ask and report over HTTP."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from amphitrite.controlplane.core.observed.observations import AgentReport
from amphitrite.dataplane.table.json_codec import from_json
from amphitrite.dataplane.table.routing_table import Cluster, Route, RoutingTable, Secret
from amphitrite.dataplane.table.text_codec import TableText, apply_change

TABLE = "/dataplane/v1/routing-table"
digest = TableText().digest
THIRD = RoutingTable(3, (Route("ep1", (Secret("k"),), ()),))


def test_a_newer_table_is_answered_at_once_an_older_one_is_not(world: Any) -> None:
    assert world.client.get(TABLE).status_code == 204
    world.services.feed.published(THIRD)
    assert from_json(world.client.get(f"{TABLE}?after=2&wait_s=60").json()) == THIRD
    assert world.client.get(f"{TABLE}?after=3").status_code == 204


def test_one_version_of_two_histories_is_told_apart(world: Any) -> None:
    world.services.feed.published(THIRD)
    query = f"{TABLE}?after=3&digest="
    assert world.client.get(query + digest(THIRD)).status_code == 204
    assert from_json(world.client.get(query + digest(RoutingTable(3)) + "&wait_s=60").json()) == THIRD
    # A control plane that lags behind has nothing to say.
    assert world.client.get(f"{TABLE}?after=4&digest={digest(RoutingTable(4))}").status_code == 204


def test_a_waiting_agent_is_answered_when_a_table_is_published(world: Any) -> None:
    with ThreadPoolExecutor(8) as agents:
        waiting = [agents.submit(world.client.get, f"{TABLE}?after=2&wait_s=60") for _ in range(8)]
        world.services.feed.published(RoutingTable(2))
        world.services.feed.published(THIRD)
        assert [answer.result(60).json()["version"] for answer in waiting] == [3] * 8


def test_an_ending_process_lets_everybody_go(world: Any) -> None:
    with ThreadPoolExecutor(1) as agents:
        waiting = agents.submit(world.client.get, f"{TABLE}?wait_s=60")
        world.services.feed.close()
        assert waiting.result(60).status_code == 204


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


def test_an_agent_that_says_farewell_is_forgotten(world: Any) -> None:
    assert world.client.put("/dataplane/v1/agents/one", json={"acknowledged_version": 3}).status_code == 204
    for wakes in (2, 2):  # the second time there is nothing to forget
        assert world.client.delete("/dataplane/v1/agents/one").status_code == 204
        assert len(world.wakes) == wakes
    assert world.client.get("/dataplane/v1/agents").json() == {"value": []}


def test_a_version_that_nobody_counted_to_is_refused(world: Any) -> None:
    body = {"acknowledged_version": 10**30}
    assert world.client.put("/dataplane/v1/agents/one", json=body).json()["error"]["code"] == "BadArgument"


@pytest.mark.parametrize(
    ("asked", "since"),
    [
        ({"after": 2, "changes": True}, 2),
        ({"after": 2}, None),
        ({"after": 2, "changes": True, "digest": "of another history"}, None),
        ({"after": 1, "changes": True}, None),
    ],
)
def test_an_agent_that_takes_changes_is_told_those_since_its_own_table(
    world: Any, asked: dict[str, Any], since: int | None
) -> None:
    second = RoutingTable(2, clusters=(Cluster("c", (), 1, 1.0),))
    world.services.feed.published(second)
    world.services.feed.published(THIRD)
    answer = world.client.get(TABLE, params={"digest": digest(second), **asked}).json()
    assert answer.get("since") == since
    assert (from_json(answer) if since is None else apply_change(second, answer)) == THIRD


def test_a_flush_of_samples_counts_once_and_by_the_clock_here(world: Any) -> None:
    flush = {"flush": 7, "samples": [["Ep1", "Blue", 0.5, 1.0, 3, 0, 4, 0.25, 1]]}
    for _ in range(2):  # Its answer was lost.
        assert world.client.put("/dataplane/v1/agents/one/samples", json=flush).status_code == 204
    (stored,) = world.services.samples.since(0)
    assert stored.content == [["ep1", "blue", world.now[0] - 0.5, 1.0, 3, 0, 4, 0.25, 1]]
    for refused in ({**flush, "flush": -1}, {**flush, "flush": 2**63}, {**flush, "samples": [["ep", "blue", 1]]}, {}):
        answer = world.client.put("/dataplane/v1/agents/one/samples", json=refused)
        assert answer.json()["error"]["code"] == "BadArgument"
