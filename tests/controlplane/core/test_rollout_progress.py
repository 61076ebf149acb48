"""Rollouts: rows of one look, requests of people, and whole rollouts of counters that grow."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amphitrite.controlplane.core.history.traffic_history import Traffic
from amphitrite.controlplane.core.rollouts import progress, requests, rollout_json, rollout_plan
from amphitrite.controlplane.core.rollouts import traffic_rollout as rollout
from amphitrite.controlplane.core.rollouts.evidence import Count
from amphitrite.controlplane.core.rollouts.progress import Advance, Facts
from amphitrite.controlplane.core.rollouts.request_counts import Reading, remembered, since
from amphitrite.controlplane.core.rollouts.traffic_rollout import Rollout
from amphitrite.dataplane.table.routing_table import Comparison
from amphitrite.schemas.errors import Error

EDGES = (0.01, 0.02, 0.05, 0.07, 0.1)
BOTH = ("Blue", "green")
START = 1000.0


def planned(base: Mapping[str, int] | None = None, **written: object) -> Rollout:
    before = Traffic(base or {"blue": 100}, {})
    plan = rollout_plan.make("GREEN", {"steps": [10, 100], **written}, before, None, BOTH, EDGES)
    return rollout.begin("images", plan, START)


def facts(of: Rollout, **changed: object) -> Facts:
    """What is while all is well."""
    return replace(Facts(rollout.traffic(of), True, BOTH, True, "v1"), **changed)


def counted(total: int, bad: int = 0, slow: int = 0) -> Mapping[str, Count]:
    return {"errors": Count(total, bad), "slower than 70 ms": Count(total, slow)}


def looked(of: Rollout, now: float, new: Mapping[str, Count] | None = None, **changed: object) -> Advance:
    """One look of one agent, whose counters were at zero."""
    return progress.advance(of, {"a": Reading(START, new or {}, counted(1000))}, facts(of, **changed), now)


def at_step(number: int, now: float = START, **written: object) -> Rollout:
    """In force at that step since ``now``."""
    found = planned(**written)
    while found.phase < number:
        found = progress.next_step(found, "", now).rollout
    return looked(found, now).rollout


def test_the_others_get_the_rest_in_proportion() -> None:
    assert rollout_plan.shares_at("g", {"a": 50, "b": 30, "c": 20}, 33) == {"a": 34, "b": 20, "c": 13, "g": 33}
    assert rollout_plan.shares_at("g", {"a": 99, "b": 1}, 1) == {"a": 98, "b": 1, "g": 1}
    assert rollout_plan.shares_at("g", {"a": 99, "g": 1}, 100) == {"g": 100}


@given(st.dictionaries(st.sampled_from("abcdg"), st.integers(1, 100), min_size=1), st.integers(1, 100))
def test_shares_sum_to_100(base: dict[str, int], percent: int) -> None:
    shares = rollout_plan.shares_at("g", base, percent)
    assert sum(shares.values()) == 100
    assert shares["g"] == (percent if set(base) - {"g"} else 100)


def test_a_plan_has_its_defaults_and_the_next_latency_that_is_counted() -> None:
    plan = planned(steps=None, max_p95="80ms", compare_with="BLUE", shadow="10m").plan
    assert (plan.to, plan.compare_with, plan.base, plan.target) == ("green", "Blue", {"Blue": 100}, {"green": 100})
    assert (plan.steps, plan.bake_s, plan.alpha, plan.shadow_s) == ((1, 10, 50, 100), 60.0, 0.01, 600.0)
    assert [(one.name, one.limit, one.margin) for one in plan.objectives] == [
        ("errors", 0.01, 0.2),
        ("slower than 70 ms", 0.05, 0.2),
    ]
    again = rollout_plan.written(plan)
    assert again["max_p95"] == "70ms"
    assert rollout_plan.make("green", again, Traffic({"blue": 100}, {}), None, BOTH, EDGES) == plan


REFUSED = [
    ({"steps": []}, "steps: must be 1 to 20 growing whole numbers"),
    ({"steps": [10, 10]}, "steps: must be"),
    ({"steps": [10, 5]}, "steps: must be"),
    ({"steps": [101]}, "steps: must be"),
    ({"steps": [0, 10]}, "steps: must be"),
    ({"steps": [True]}, "steps: must be"),
    ({"steps": "10"}, "steps: must be"),
    ({"bake": "60"}, "bake: must be a duration"),
    ({"bake": "169h"}, "bake: must be at most 168h"),
    ({"max_error_rate": "1"}, "max_error_rate: must be a percentage"),
    ({"max_error_rate": "60%"}, "max_error_rate: must be from 0.001% to 50%"),
    ({"max_p95": "80"}, "max_p95: must be a duration"),
    ({"max_p95": "5ms"}, "max_p95: must be at least 10ms"),
    ({"compare_with": "red"}, "compare_with: there is no deployment red; there are: Blue, green"),
    ({"compare_with": "green"}, "compare_with: is green itself"),
    ({"compare_with": "blue", "margin": "2000%"}, "margin: must be from 0% to 1000%"),
    ({"alpha": 0.5}, "alpha: must be a number"),
    ({"alpha": True}, "alpha: must be a number"),
    ({"alhpa": 0.5}, "alhpa: is no field of a rollout"),
    ({"max_answer_difference": 0.1}, "max_answer_difference: needs shadow"),
    ({"shadow": "1m", "answer_share": "5%"}, "answer_share: needs max_answer_difference or min_argmax_agreement"),
    ({"shadow": "1m", "max_answer_difference": -1}, "max_answer_difference: must be a number from 0"),
    (
        {"shadow": "1m", "min_argmax_agreement": "99%", "max_differing_answers": "1%"},
        "max_differing_answers: needs max_answer_difference",
    ),
    ({"shadow": "1m", "min_argmax_agreement": "100%"}, "min_argmax_agreement: must be from 50% to 99.999%"),
    ({"shadow": "1m", "min_argmax_agreement": "99%", "answer_share": "0.5%"}, "answer_share: must be from 1% to 100%"),
]


@pytest.mark.parametrize(("written", "message"), REFUSED)
def test_what_makes_no_plan_is_refused(written: dict[str, object], message: str) -> None:
    with pytest.raises(Error) as refused:
        planned(**written)
    assert refused.value.message.startswith(message)


def test_an_endpoint_without_traffic_has_nothing_to_go_back_to() -> None:
    with pytest.raises(Error, match="no traffic that could move"):
        rollout_plan.make("green", {}, Traffic({}, {}), None, BOTH, EDGES)
    with pytest.raises(Error, match="green has 50 % of the traffic already"):
        planned({"blue": 50, "green": 50}, steps=[10])


#: (what, the rollout, what was counted, what is, seconds since the step began, state, traffic,
#: reason)
LOOKS = [
    ("not ready", planned(), None, {"ready": False}, 0, "Running", None, "it waits until deployment green is ready"),
    ("busy", planned(), None, {"in_force": False}, 0, "Running", None, "it waits until the endpoint's last change"),
    ("begins", planned(), None, {}, 0, "Running", {"Blue": 90, "green": 10}, "step 1 of 2, 10 %; before the first"),
    ("bakes", at_step(0), counted(900), {}, 30, "Running", None, "step 1 of 2, 10 %; errors: 0 % (0 of 900)"),
    ("silent", at_step(0), None, {}, 30, "Running", None, "step 1 of 2, 10 %; the new deployment has answered no"),
    ("too silent", at_step(0), None, {}, 60, "NoData", None, "step 1 of 2, 10 %; the new deployment has answered"),
    ("too few", at_step(0), counted(100), {}, 60, "Inconclusive", None, "step 1 of 2, 10 %; about 540 more requests"),
    ("good", at_step(0), counted(900), {}, 60, "Promoting", {"green": 100}, "step 2 of 2, 100 %; step 1 of 2, 10 %: e"),
    ("bad", at_step(0), counted(99, 9), {}, 5, "RolledBack", {"Blue": 100}, "errors: 9.09 % (9 of 99), above the"),
    ("dead", at_step(0), counted(20, 20), {}, 5, "RolledBack", {"Blue": 100}, "errors: 100 % (20 of 20) in one"),
    ("last bakes", at_step(1), counted(900), {}, 30, "Promoting", None, "step 2 of 2, 100 %; errors: 0 % (0 of 900)"),
    ("last is bad", at_step(1), counted(99, 9), {}, 30, "RolledBack", {"Blue": 100}, "errors: 9.09 % (9 of 99), ab"),
    ("ends", at_step(1), counted(900), {}, 60, "Succeeded", None, "green has 100 % of the traffic; errors: 0 %"),
    ("leaves", at_step(0), None, {"is_leaving": True}, 5, "Aborted", None, "the endpoint is being deleted"),
    ("deleted", at_step(0), None, {"deployments": ("Blue",)}, 5, "Aborted", None, "deployment green was deleted"),
    ("moved", at_step(0), None, {"traffic": Traffic({"Blue": 100}, {})}, 5, "Aborted", None, "its traffic was chan"),
    ("alone", at_step(0), counted(99, 9), {"deployments": ("green",)}, 5, "Aborted", None, "errors: 9.09 % (9 of 99)"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("of", "new", "changed", "after_s", "state", "traffic", "reason"),
    [row[1:] for row in LOOKS],
    ids=[r[0] for r in LOOKS],
)
def test_one_look(
    of: Rollout,
    new: Mapping[str, Count] | None,
    changed: dict[str, object],
    after_s: float,
    state: str,
    traffic: dict[str, int] | None,
    reason: str,
) -> None:
    found = looked(of, START + after_s, new, **changed)
    assert (found.rollout.state, found.rollout.reason[: len(reason)]) == (state, reason)
    assert found.traffic == (None if traffic is None else Traffic(traffic, {}))
    assert found.rollout.is_active == (found.rollout.ended_at is None)


def test_a_step_begins_when_all_proxies_have_it() -> None:
    moved = looked(planned(), START).rollout
    waits = looked(moved, START + 50, counted(900), in_force=False).rollout
    assert (waits.began_at, waits.reason) == (None, "step 1 of 2, 10 %: until all proxies have it")
    assert looked(waits, START + 100).wake_at == START + 160


def test_a_changed_deployment_is_judged_anew() -> None:
    judged = looked(at_step(0), START + 30, counted(900)).rollout
    again = looked(judged, START + 60, counted(900), version="v2").rollout
    assert (again.state, again.began_at, again.judgement.trials) == ("Running", START + 60, {})


def test_mirrored_requests_are_judged_before_the_first_step() -> None:
    shadow = looked(planned(shadow="10m", compare_with="blue"), START)
    assert shadow.traffic == Traffic({"Blue": 100}, {"green": 10})
    of = looked(shadow.rollout, START).rollout
    seen = {"a": Reading(START, {}, counted(9000), {"errors": Count(1000, 0)})}
    assert progress.advance(of, seen, facts(of), START + 30).rollout.reason.startswith("10 % mirrored; errors: 0 %")
    assert progress.advance(of, seen, facts(of), START + 600).traffic == Traffic({"Blue": 90, "green": 10}, {})
    failing = {"a": Reading(START, {}, counted(9000), {"errors": Count(1000, 100)})}
    back = progress.advance(of, failing, facts(of), START + 30)
    assert (back.rollout.state, back.traffic) == ("RolledBack", Traffic({"Blue": 100}, {}))


def test_answers_are_compared_while_traffic_is_mirrored() -> None:
    written = {"shadow": "10m", "max_answer_difference": 0.01, "min_argmax_agreement": "99%", "answer_share": "5%"}
    of = looked(looked(planned(**written), START).rollout, START).rollout
    assert rollout.comparison(of) == Comparison("blue", "green", 5, 0.01)
    assert rollout_plan.written(of.plan) == {**rollout_plan.written(planned(shadow="10m").plan), **written} | {
        "max_differing_answers": "1%"
    }
    errors, differ, disagree = (one.name for one in of.plan.shadow_objectives)
    assert (differ, disagree) == ("answers that differ by more than 0.01", "answers with another argmax")

    def seen(differing: int, compared: int = 2000) -> dict[str, Reading]:
        copies = {errors: Count(9000), differ: Count(compared, differing), disagree: Count(compared)}
        return {"a": Reading(START, {}, {}, copies, {"scores": 0.004, "boxes": 1e18})}

    unseen = progress.advance(of, seen(0, 0), facts(of), START + 600).rollout
    assert (unseen.state, unseen.reason) == ("NoData", "10 % mirrored; no answer could be compared yet")
    moved = progress.advance(of, seen(2), facts(of), START + 600)
    assert moved.traffic == Traffic({"Blue": 90, "green": 10}, {})
    assert moved.rollout.differences == {"boxes": 1e18, "scores": 0.004}
    assert rollout.comparison(moved.rollout) is None
    back = progress.advance(of, seen(200), facts(of), START + 30)
    assert (back.rollout.state, back.traffic) == ("RolledBack", Traffic({"Blue": 100}, {}))
    assert back.rollout.reason.startswith("answers that differ by more than 0.01: 10 % (200 of 2,000)")


def test_what_was_mirrored_before_is_mirrored_again_after_a_rollback() -> None:
    plan = rollout_plan.make("green", {}, Traffic({"blue": 100}, {"green": 5}), None, BOTH, EDGES)
    moved = looked(rollout.begin("images", plan, START), START)
    assert moved.traffic == Traffic({"Blue": 99, "green": 1}, {})
    back = looked(moved.rollout, START + 5, counted(99, 50))
    assert back.traffic == Traffic({"Blue": 100}, {"green": 5})


def test_a_paused_one_moves_only_back() -> None:
    paused = requests.ask(at_step(0), "pause", full=False, reason="lunch", deployments=BOTH, now=START).rollout
    assert (paused.state, paused.reason) == ("Paused", "paused at step 1 of 2, 10 %: lunch")
    waits = looked(paused, START + 600, counted(5000))
    assert (waits.rollout.state, waits.traffic) == ("Paused", None)
    assert looked(paused, START + 600, counted(99, 9)).rollout.state == "RolledBack"
    on = requests.ask(waits.rollout, "resume", full=False, reason="", deployments=BOTH, now=START + 601).rollout
    assert (on.state, looked(on, START + 602, counted(5000)).traffic) == ("Running", Traffic({"green": 100}, {}))


def test_people_promote_and_abort() -> None:
    def asked(of: Rollout, request: requests.Request, full: bool = False) -> Advance:
        return requests.ask(of, request, full=full, reason="", deployments=BOTH, now=START)

    assert asked(planned(), "promote").traffic == Traffic({"Blue": 90, "green": 10}, {})
    assert asked(at_step(1), "promote").rollout.state == "Succeeded"
    assert (asked(planned(), "promote", True).traffic) == Traffic({"green": 100}, {})
    assert asked(planned(), "promote", True).rollout.state == "Succeeded"
    aborted = asked(at_step(0), "abort")
    assert (aborted.rollout.state, aborted.traffic) == ("Aborted", Traffic({"Blue": 100}, {}))
    for request in ("pause", "resume", "promote", "abort"):
        with pytest.raises(Error, match="the rollout has ended: Aborted"):
            asked(aborted.rollout, request)
    with pytest.raises(Error, match="is not paused: Running"):
        asked(at_step(0), "resume")


def read(began: float, total: int, bad: int = 0) -> Reading:
    return Reading(began, {"errors": Count(total, bad)})


#: (what, last, found, counted since)
READINGS = [
    ("grew", {"a": read(0, 10, 1)}, {"a": read(0, 15, 3)}, Count(5, 2)),
    ("restarted", {"a": read(0, 10, 1)}, {"a": read(2000, 4, 1)}, Count(4, 1)),
    ("restarted before the rollout", {"a": read(0, 10, 1)}, {"a": read(500, 4, 1)}, None),
    ("came late, began before", {}, {"a": read(0, 10, 1)}, None),
    ("came late, began since", {}, {"a": read(1500, 10, 1)}, Count(10, 1)),
    ("vanished", {"a": read(0, 10, 1), "b": read(0, 7)}, {"b": read(0, 9)}, Count(2, 0)),
    ("counted from zero", {"a": read(0, 10, 1)}, {"a": read(0, 3, 1)}, Count(3, 1)),
    ("two", {"a": read(0, 10, 1), "b": read(0, 7)}, {"a": read(0, 11, 2), "b": read(0, 9)}, Count(3, 1)),
]


@pytest.mark.parametrize(("last", "found", "wanted"), [row[1:] for row in READINGS], ids=[row[0] for row in READINGS])
def test_counters_of_agents(last: dict[str, Reading], found: dict[str, Reading], wanted: Count | None) -> None:
    assert since(last, found, START).new.get("errors") == wanted


def test_an_agent_that_was_away_counts_what_it_has_counted_since() -> None:
    last = remembered({"a": read(0, 10), "b": read(0, 5)}, {"b": read(0, 6)})
    assert since(last, {"a": read(0, 25), "b": read(0, 6)}, START).new == {"errors": Count(15)}


@given(st.lists(st.tuples(st.integers(0, 400), st.floats(0, 0.1)), max_size=12), st.booleans())
def test_what_is_stored_is_what_goes_on(looks: list[tuple[int, float]], shadow: bool) -> None:
    """After each look the rollout goes through JSON, as a leader that takes over reads it: nothing
    differs. A rollout always ends in its target or where it began."""
    mirrored = {"shadow": "10s", "max_answer_difference": 0.5} if shadow else {}
    kept = planned(compare_with="blue", max_p95="80ms", **mirrored)
    traffic, total, bad, now = rollout.traffic(kept), 0, 0, START
    for requests_, rate in looks:
        total, bad, now = total + requests_, bad + int(requests_ * rate), now + 30
        copies = {**counted(total, bad), "answers that differ by more than 0.5": Count(total)}
        other_ = counted(9 * total, total // 100)
        found = {"a": Reading(START, counted(total, bad, bad), other_, copies, {"y": rate})}
        other = rollout_json.from_json(json.loads(json.dumps(rollout_json.to_json(kept))))
        assert other == kept
        one = progress.advance(kept, found, facts(kept, traffic=traffic), now)
        assert one == progress.advance(other, found, facts(kept, traffic=traffic), now)
        kept, traffic = one.rollout, one.traffic or traffic
        if not kept.is_active:
            ends = {"Succeeded": kept.plan.target, "RolledBack": kept.plan.base}
            assert traffic == Traffic(ends[kept.state], {})
