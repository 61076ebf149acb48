"""Rollouts over HTTP, with the real store, real reports of agents and the leader's passes.

Each pass is made by a new driver, as by a leader that has just taken over.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from amphitrite.controlplane.core.observed.status import Ref
from amphitrite.controlplane.reconciliation.rollout_driver import RolloutDriver
from amphitrite.controlplane.store.state import rollout_rows
from amphitrite.dataplane.table.routing_table import Comparison
from amphitrite.schemas.errors import Error

from .conftest import WS

ENDPOINT = f"{WS}/onlineEndpoints/ep1"
ROLLOUTS = f"{ENDPOINT}/rollouts"
AGENT = "/dataplane/v1/agents/proxy-1"
SETTINGS = {"steps": [10, 100], "bake": "60s"}
BY = {"Amphitrite-Author": "ann", "Amphitrite-Reason": "new%20model"}


@pytest.fixture
def both(ready: Any) -> Any:
    """Blue and green serve; blue has the traffic. An agent has reported."""
    assert ready.deployment("green").status_code == 201
    assert ready.endpoint(traffic={"blue": 100}).status_code == 200
    ready.settle()
    counted(ready)
    return ready


def counted(
    world: Any, good: int = 0, failed: int = 0, slow: int = 0, copies: int = 0, compared: int = 0, differ: int = 0
) -> None:
    """The agent's totals of green."""
    fields = {"requests/200/": good, "requests/424/ModelError": failed, "requests/401/": 7, "requests/0/Gone": 3}
    fields |= {"le/2": good + failed - slow, "le/20": slow, "copies/200": copies}
    fields |= {"answers/compared": compared, "answers/differ": differ}
    body = {"began": 1.0, "counters": {"ep1": {"green": fields}}, "in_flight": {}, "used": {}}
    body["differences"] = {"ep1": {"green": {"scores": 0.25}}} if compared else {}
    assert world.client.put(AGENT, json={}).status_code == 204
    assert world.client.put(f"{AGENT}/metrics", json=body).status_code == 204


def looked(world: Any, after_s: float = 0.0, **counts: int) -> dict[str, Any]:
    """A leader's pass, after some seconds and a report; the proxies then have the traffic."""
    world.now[0] += after_s
    counted(world, **counts)
    services = world.services
    driver = RolloutDriver(world.store, services.metrics, services.agents, services.wake)
    driver.make_pass(world.now[0])
    world.settle()
    return dict(world.client.get(ROLLOUTS).json()["value"][0])


def started(world: Any, **settings: Any) -> dict[str, Any]:
    answer = world.client.post(ROLLOUTS, json={"to": "green", **SETTINGS, **settings}, headers=BY)
    assert answer.status_code == 201, answer.text
    assert looked(world)["state"] == "Running"
    return looked(world)


def traffic(world: Any) -> Any:
    return world.client.get(ENDPOINT).json()["properties"]["traffic"]


def test_a_good_one_gets_all_the_traffic(both: Any) -> None:
    first = started(both)
    assert (first["number"], first["percent"], first["author"], first["startReason"]) == (1, 10, "ann", "new model")
    assert traffic(both) == {"blue": 90, "green": 10}
    soon = looked(both, 30, good=400)
    assert soon["reason"].startswith("step 1 of 2, 10 %; about 240 more requests are needed")
    assert [(one["name"], one["total"], one["bad"], one["needed"]) for one in soon["objectives"]] == [
        ("errors", 400, 0, 240)
    ]
    assert looked(both, 31, good=900)["state"] == "Promoting"
    assert traffic(both) == {"green": 100}
    looked(both, 1, good=900)
    last = looked(both, 60, good=1900)
    assert (last["state"], last["percent"], last["endTime"] is not None) == ("Succeeded", 100, True)
    history = both.client.get(f"{ENDPOINT}/trafficHistory").json()["value"]
    assert [(one["cause"], one["author"], one["to"]) for one in history[:2]] == [
        ("rollout", "ann", {"green": 100}),
        ("rollout", "ann", {"blue": 90, "green": 10}),
    ]
    assert history[0]["reason"].startswith("step 2 of 2, 100 %; step 1 of 2, 10 %: errors: 0 % (0 of 900)")


def test_a_failing_one_loses_it_in_one_change(both: Any) -> None:
    started(both)
    back = looked(both, 10, good=90, failed=10)
    assert (back["state"], back["percent"]) == ("RolledBack", 0)
    assert back["reason"] == "errors: 10 % (10 of 100), above the limit of 1 %, at step 1 of 2, 10 %"
    assert traffic(both) == {"blue": 100}
    newest = both.client.get(f"{ENDPOINT}/trafficHistory").json()["value"][0]
    assert (newest["cause"], newest["reason"]) == ("rollout", back["reason"])
    assert both.client.get(f"{ENDPOINT}/deployments/green").status_code == 200  # It is left for a look.
    assert started(both)["number"] == 2


def test_a_slow_one_is_found_too(both: Any) -> None:
    first = started(both, maxP95="80ms")
    assert first["settings"]["maxP95"] == "70ms"
    assert "slower than 70 ms: 30 % (30 of 100)" in looked(both, 10, good=100, slow=30)["reason"]


def test_the_traffic_of_a_rollout_is_nobody_elses(both: Any) -> None:
    started(both)
    for answer in (
        both.endpoint(traffic={"blue": 100}),
        both.client.post(f"{ENDPOINT}/restoreTraffic", json={}),
        both.client.post(ROLLOUTS, json={"to": "green"}),
    ):
        assert answer.status_code == 409
        assert "goes on" in answer.json()["error"]["message"]
    assert both.endpoint(traffic={"blue": 90, "GREEN": 10}, description="as it is").status_code == 200
    assert traffic(both) == {"blue": 90, "GREEN": 10}
    both.settle()
    assert looked(both)["state"] == "Running"
    assert both.client.delete(f"{ENDPOINT}/deployments/green").status_code == 400
    assert both.client.delete(f"{ENDPOINT}/deployments/green?force=true").status_code == 202
    gone = looked(both)
    assert (gone["state"], gone["reason"]) == ("Aborted", "deployment green was deleted")
    assert traffic(both) == {"blue": 100}


def test_people_pause_resume_promote_and_abort(both: Any) -> None:
    def ask(number: int, what: str, body: dict[str, Any] | None = None) -> Any:
        return both.client.post(f"{ROLLOUTS}/{number}/{what}", json=body or {}, headers=BY)

    started(both)
    assert ask(1, "pause").json()["reason"] == "paused at step 1 of 2, 10 %: new model"
    assert ask(1, "pause").status_code == 409
    assert looked(both, 600, good=5000)["state"] == "Paused"
    assert ask(1, "resume").json()["state"] == "Running"
    assert ask(1, "promote").json()["percent"] == 100
    assert traffic(both) == {"green": 100}
    aborted = ask(1, "abort").json()
    assert (aborted["state"], traffic(both)) == ("Aborted", {"blue": 100})
    assert ask(1, "abort").status_code == 409
    assert ask(2, "abort").status_code == 404
    both.settle()
    started(both)
    assert ask(2, "promote", {"full": "yes"}).status_code == 400
    assert ask(2, "promote", {"full": True}).json()["state"] == "Succeeded"
    assert traffic(both) == {"green": 100}


def test_a_change_of_traffic_becomes_a_rollout_by_the_document(both: Any) -> None:
    entries = {"amphitrite.rollout": json.dumps(SETTINGS), "mine": "1"}
    wanted: dict[str, Any] = {"traffic": {"green": 100}, "properties": entries}
    answer = both.endpoint(**wanted)
    assert answer.status_code == 200
    assert answer.json()["properties"]["traffic"] == {"blue": 100}
    assert json.loads(answer.json()["properties"]["properties"]["amphitrite.rollout"]) == SETTINGS
    both.settle()
    assert looked(both)["to"] == "green"
    assert looked(both)["percent"] == 10
    # The same again, as a pipeline does: it goes on.
    assert both.endpoint(**wanted).json()["properties"]["traffic"] == {"blue": 90, "green": 10}
    assert both.endpoint(**{**wanted, "traffic": {"blue": 50, "green": 50}}).status_code == 409
    assert both.endpoint(**{**wanted, "properties": {}}).status_code == 409
    both.client.post(f"{ROLLOUTS}/1/promote", json={"full": True})
    # What says only that its last traffic stays is no rollout.
    assert both.endpoint(**wanted).status_code == 200
    assert len(both.client.get(ROLLOUTS).json()["value"]) == 1


REFUSED_DOCUMENTS = [
    ({"blue": 50, "green": 25, "red": 25}, SETTINGS, "a rollout raises the share of one deployment, but those of"),
    ({}, SETTINGS, "a rollout raises the share of one deployment, but that of none does"),
    ({"green": 100}, {"compare_with": "teal"}, "rollout.compare_with: there is no deployment teal"),
    ({"green": 100}, {"steps": [50, 10]}, "rollout.steps: must be"),
    ({"green": 100}, {"bake": "soon"}, "rollout.bake"),
    ({"green": 100}, {"alhpa": 1}, "alhpa"),
    ({"green": 100}, [], "must be a JSON object"),
    ({"green": 100}, 1, "must be a JSON object"),
]
REFUSED_STARTS = [
    ({}, "to must name the deployment"),
    ({"to": "teal"}, "there is no deployment teal"),
    ({"to": "green", "maxP95": "soon"}, "max_p95: must be a duration"),
    ({"to": "green", "step": [1]}, "is no field of a rollout"),
    ({"to": "blue"}, "blue has 100 % of the traffic already"),
]


def test_what_cannot_be_a_rollout_is_refused(both: Any) -> None:
    assert both.deployment("red").status_code == 201
    for wanted, settings, said in REFUSED_DOCUMENTS:
        refused = both.endpoint(traffic=wanted, properties={"amphitrite.rollout": json.dumps(settings)})
        assert (refused.status_code, said in refused.text) == (400, True), refused.text
    for body, said in REFUSED_STARTS:
        refused = both.client.post(ROLLOUTS, json=body)
        assert (refused.status_code, said in refused.json()["error"]["message"]) == (400, True), refused.text
    assert (traffic(both), both.client.get(ROLLOUTS).json()) == ({"blue": 100}, {"value": []})


def test_a_failed_deployment_gets_none(both: Any) -> None:
    both.record(Ref("ep1", "green"), 99, "Failed")
    answer = both.client.post(ROLLOUTS, json={"to": "green"})
    assert (answer.status_code, "green has failed" in answer.text) == (400, True)


def test_mirrored_requests_come_first(both: Any) -> None:
    started(both, shadow="10m")
    body = both.client.get(ENDPOINT).json()["properties"]
    assert (body["traffic"], body["mirrorTraffic"]) == ({"blue": 100}, {"green": 10})
    looked(both, 600, copies=2000)
    body = both.client.get(ENDPOINT).json()["properties"]
    assert (body["traffic"], body["mirrorTraffic"]) == ({"blue": 90, "green": 10}, {})


def test_proxies_compare_answers_while_traffic_is_mirrored(both: Any) -> None:
    started(both, shadow="10m", maxAnswerDifference=0.1, answerShare="20%")
    assert both.store.load_world().endpoints[0].comparison == Comparison("blue", "green", 20, 0.1)
    shown = looked(both, 60, copies=2000, compared=100, differ=40)
    assert (shown["state"], shown["largestDifferences"]) == ("RolledBack", {"scores": 0.25})
    assert both.store.load_world().endpoints[0].comparison is None


def test_it_ends_with_its_endpoint(both: Any) -> None:
    started(both)
    assert both.client.delete(ENDPOINT).status_code == 202
    services = both.services
    driver = RolloutDriver(both.store, services.metrics, services.agents, services.wake)
    driver.make_pass(both.now[0])
    assert both.store.active_rollouts() == []


def test_a_process_that_dies_at_its_write_leaves_the_step_to_the_next_one(
    both: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the transaction ends, after it, and after a person came in between: the next pass
    makes each step once."""
    started(both)
    real = rollout_rows.changes.put

    def dying(*args: Any, **more: Any) -> Any:
        real(*args, **more)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(rollout_rows.changes, "put", dying)
        with pytest.raises(KeyboardInterrupt):
            looked(both, 61, good=900)
    assert traffic(both) == {"blue": 90, "green": 10}
    assert both.client.get(ROLLOUTS).json()["value"][0]["step"] == 1
    kept = both.store.active_rollouts()[0]
    looked(both, 1, good=900)
    assert (traffic(both), both.client.get(ROLLOUTS).json()["value"][0]["step"]) == ({"green": 100}, 2)
    with pytest.raises(Error, match="has changed since"):
        both.store.advance_rollout(kept, kept, None, by=None, now=1.0)
    causes = [one["cause"] for one in both.client.get(f"{ENDPOINT}/trafficHistory").json()["value"]]
    assert causes.count("rollout") == 2
