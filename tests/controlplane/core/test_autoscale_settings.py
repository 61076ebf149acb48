"""Azure Monitor's autoscale settings: what is read and refused, which profile is in force, and the
number of instances."""

from __future__ import annotations

import copy
from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amphitrite.controlplane.core.autoscale_settings import evaluation, profiles, setting_reading
from amphitrite.controlplane.core.autoscale_settings.setting import AutoscaleSetting, MetricTrigger
from amphitrite.schemas.errors import Error

WS = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"
ENDPOINT = f"{WS}/onlineEndpoints/pets"
BLUE = f"{ENDPOINT}/deployments/blue"
CPU, LATENCY = "CpuUtilizationPercentage", "RequestLatency"


def rule(metric: str, sign: str, threshold: float, direction: str, value: str = "1", **more: Any) -> dict[str, Any]:
    trigger = {
        "metricName": metric,
        "metricResourceUri": ENDPOINT if metric.startswith("Request") else BLUE,
        "timeGrain": "PT1M",
        "statistic": "Average",
        "timeWindow": "PT5M",
        "timeAggregation": "Average",
        "operator": {">": "GreaterThan", "<": "LessThan"}[sign],
        "threshold": threshold,
    }
    action = {"direction": direction, "type": "ChangeCount", "value": value, "cooldown": "PT5M"}
    return {
        "metricTrigger": {**trigger, **{k: v for k, v in more.items() if k in (*trigger, "dividePerInstance")}},
        "scaleAction": {**action, **{k: v for k, v in more.items() if k in action}},
    }


def profile(name: str, low: int, most: int, default: int, *rules: dict[str, Any], **more: Any) -> dict[str, Any]:
    capacity = {"minimum": str(low), "maximum": str(most), "default": str(default)}
    return {"name": name, "capacity": capacity, "rules": list(rules), **more}


def weekly(zone: str, days: list[str], hour: int, minute: int) -> dict[str, Any]:
    return {
        "frequency": "Week",
        "schedule": {"timeZone": zone, "days": days, "hours": [hour], "minutes": [minute]},
    }


def properties(*found: dict[str, Any]) -> dict[str, Any]:
    return {"enabled": True, "targetResourceUri": BLUE, "profiles": list(found)}


def setting(*found: dict[str, Any]) -> AutoscaleSetting:
    return setting_reading.read("as", properties(*found), WS)


OUT, IN = rule(CPU, ">", 70, "Increase", "2"), rule(CPU, "<", 25, "Decrease")
SLOW = rule(LATENCY, ">", 70, "Increase")


# -- reading ---------------------------------------------------------------------------------------
def test_reads_what_azures_script_sends() -> None:
    read = setting(profile("default", 2, 5, 2, OUT, IN, SLOW))
    (found,) = read.profiles
    assert (found.capacity.minimum, found.capacity.maximum, len(found.rules)) == (2, 5, 3)
    assert found.rules[0].trigger.time_window_s == 300
    assert found.rules[2].trigger.source.deployment is None


def changed(path: str, value: Any) -> dict[str, Any]:
    body = copy.deepcopy(properties(profile("default", 2, 5, 2, OUT, IN)))
    at: Any = body
    *steps, last = path.split("/")
    for step in steps:
        at = at[int(step) if step.isdigit() else step]
    at[int(last) if last.isdigit() else last] = value
    return body


TRIGGER, ACTION = "profiles/0/rules/0/metricTrigger", "profiles/0/rules/0/scaleAction"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("targetResourceUri", ENDPOINT, "only a deployment here can be scaled"),
        ("targetResourceUri", None, "properties.targetResourceUri: required"),
        ("name", "other", "but the path says 'as'"),
        ("enabled", "yes", "must be true or false"),
        ("profiles", [], "needs at least one profile"),
        ("profiles", [profile(str(n), 1, 1, 1) for n in range(21)], "has 21 entries; at most 20"),
        ("profiles", [profile("a", 1, 1, 1), profile("b", 1, 1, 1)], "only one profile may have none"),
        ("profiles/0/rules", [OUT] * 11, "properties.profiles[0].rules: has 11 entries; at most 10"),
        ("profiles/0/capacity/minimum", "0", "a rule could not wake the deployment"),
        ("profiles/0/capacity/minimum", "six", "whole numbers from 0 to 1000"),
        ("profiles/0/capacity/minimum", "6", "more than the maximum of 5"),
        ("profiles/0/capacity/default", "1", "allowed: 2 to 5"),
        ("profiles/0/capacity/mininum", "1", "did you mean minimum?"),
        ("profiles/0/recurrence", weekly("Mars Time", ["Monday"], 0, 0), "no time zone 'Mars Time'"),
        ("profiles/0/recurrence", {**weekly("UTC", ["Monday"], 0, 0), "frequency": "Day"}, "allowed: Week"),
        ("profiles/0/recurrence", weekly("UTC", ["Caturday"], 0, 0), "must be a list of Monday"),
        ("profiles/0/recurrence", weekly("UTC", ["Monday"], 24, 0), "whole numbers from 0 to 23"),
        ("profiles/0/fixedDate", {"start": "2026-12-26", "end": "2026-12-24"}, "must be later than start"),
        ("profiles/0/fixedDate", {"start": "soon", "end": "2026-12-24"}, "write a time such as"),
        (f"{TRIGGER}/metricName", "GpuUtilizationPercentage", "this server does not measure GPUs"),
        (f"{TRIGGER}/metricName", "Percentage CPU", "there is no metric 'Percentage CPU'; available: Cpu"),
        (f"{TRIGGER}/metricResourceUri", ENDPOINT, "is a metric of deployments"),
        (f"{TRIGGER}/metricResourceUri", "/subscriptions/x", "the id of an endpoint or a deployment here"),
        (f"{TRIGGER}/metricNamespace", "Microsoft.Compute/virtualMachineScaleSets", "onlineEndpoints/deployments"),
        (f"{TRIGGER}/timeGrain", "PT30S", "is PT30S; allowed: PT1M to PT6H"),
        (f"{TRIGGER}/timeGrain", "PT10M", "must not be longer than timeWindow"),
        (f"{TRIGGER}/timeWindow", "PT4M", "allowed: PT5M to PT6H"),
        (f"{TRIGGER}/timeWindow", "P1Y", "must be an ISO 8601 duration"),
        (f"{TRIGGER}/statistic", "P95", "allowed: Average, Min, Max, Sum, Count"),
        (f"{TRIGGER}/operator", ">", "allowed: Equals"),
        (f"{TRIGGER}/threshold", "70", "must be a number"),
        (
            f"{TRIGGER}/dimensions",
            [{"DimensionName": "zone", "Operator": "Equals", "Values": ["a"]}],
            "CpuUtilizationPercentage has instanceId",
        ),
        (f"{ACTION}/cooldown", "PT30S", "allowed: PT1M to P7D"),
        (f"{ACTION}/type", "ServiceAllowedNextValue", "use ChangeCount"),
        (f"{ACTION}/direction", "None", "needs Increase or Decrease"),
        (f"{ACTION}/value", "0", "whole numbers from 1"),
        ("notifications", [{"operation": "Scale", "email": {"customEmails": ["a@b.c"]}}], "sends no messages"),
        ("notifications", [{"operation": "Scale", "webhooks": [{"serviceUri": "https://x"}]}], "sends no messages"),
        ("predictiveAutoscalePolicy", {"scaleMode": "Enabled"}, "forecasts nothing"),
    ],
)
def test_refuses(path: str, value: Any, message: str) -> None:
    with pytest.raises(Error) as caught:
        setting_reading.read("as", changed(path, value), WS)
    assert caught.value.code == "InvalidDocument"
    assert any(message in str(one) for one in caught.value.violations), caught.value.violations


def test_a_notification_that_tells_nobody_is_accepted() -> None:
    email = {"customEmails": [], "sendToSubscriptionAdministrator": False, "sendToSubscriptionCoAdministrators": None}
    body = {**properties(profile("default", 1, 1, 1)), "predictiveAutoscalePolicy": {"scaleMode": "Disabled"}}
    body["notifications"] = [{"operation": "scale", "email": email, "webhooks": []}]
    assert setting_reading.read("as", body, WS).enabled


@pytest.mark.parametrize(
    ("rules", "warning"),
    [
        ([OUT, IN], None),
        ([OUT, rule(CPU, "<", 25, "Increase")], "direction Increase; a rule to scale in has Decrease"),
        ([OUT], "none to scale in"),
        ([IN], "none to scale out"),
        ([IN, rule(CPU, ">", 25, "Decrease")], "direction Decrease; a rule to scale out has Increase"),
    ],
)
def test_warns(rules: list[dict[str, Any]], warning: str | None) -> None:
    found = setting_reading.warnings(setting(profile("default", 1, 5, 1, *rules)))
    assert any(warning in one for one in found) if warning else found == []


# -- profiles --------------------------------------------------------------------------------------
WEEKEND = [
    profile("default", 2, 5, 2),
    profile("weekend", 1, 1, 1, recurrence=weekly("Pacific Standard Time", ["Saturday", "Sunday"], 0, 0)),
    profile(
        '{"name": "default", "for": "weekend"}',
        *(2, 5, 2),
        recurrence=weekly("Pacific Standard Time", ["Saturday", "Sunday"], 23, 59),
    ),
    profile(
        "christmas",
        *(3, 3, 3),
        fixedDate={
            "timeZone": "Pacific Standard Time",
            "start": "2026-12-24T00:00:00+00:00",
            "end": "2026-12-27T00:00:00.000Z",
        },
    ),
]


@pytest.mark.parametrize(
    ("utc", "name"),
    [
        ("2026-11-20T12:00", '{"name": "default", "for": "weekend"}'),  # Friday
        ("2026-11-21T07:59", '{"name": "default", "for": "weekend"}'),  # Friday 23:59 in Los Angeles
        ("2026-11-21T08:00", "weekend"),
        ("2026-11-22T07:59", '{"name": "default", "for": "weekend"}'),  # Saturday 23:59
        ("2026-11-22T08:00", "weekend"),
        ("2026-11-23T07:59", '{"name": "default", "for": "weekend"}'),
        ("2026-07-04T07:00", "weekend"),  # Summer time: midnight is seven hours after UTC's.
        ("2026-12-24T07:59", '{"name": "default", "for": "weekend"}'),
        ("2026-12-24T08:00", "christmas"),
        ("2026-12-26T20:00", "christmas"),  # Saturday: a date counts more than a recurrence.
        ("2026-12-27T08:00", "weekend"),
    ],
)
def test_the_profile_in_force(utc: str, name: str) -> None:
    now = datetime.fromisoformat(utc).replace(tzinfo=timezone.utc).timestamp()
    assert profiles.in_force(setting(*WEEKEND), now).name == name


def test_without_a_schedule_the_default_is_in_force() -> None:
    now = datetime(2026, 1, 1, tzinfo=timezone.utc).timestamp()
    assert profiles.in_force(setting(WEEKEND[3], WEEKEND[0]), now).name == "default"


# -- evaluation ------------------------------------------------------------------------------------
def evaluated(rules: list[dict[str, Any]], values: dict[str, float | None], count: int, since: float = 1e6) -> Any:
    found = setting(profile("default", 2, 8, 4, *rules))
    by_trigger = {one: values[one.metric] for one in evaluation.triggers(found, 2e9)}
    return evaluation.evaluate(found, by_trigger, 2e9, count, 2e9 - since)


HALVE = rule(CPU, "<", 25, "Decrease", "50", type="PercentChangeCount")


@pytest.mark.parametrize(
    ("rules", "values", "count", "wanted", "reason"),
    [
        ([OUT, IN], {CPU: 71.0}, 3, 5, "CpuUtilizationPercentage is 71 (> 70)"),
        ([OUT, IN], {CPU: 70.0}, 3, 3, "no rule fires"),
        ([OUT, IN], {CPU: 71.0}, 7, 8, "(> 70)"),
        ([OUT, IN], {CPU: 71.0}, 8, 8, "8 is the maximum"),
        ([OUT, IN], {CPU: 24.0}, 3, 2, "(< 25)"),
        ([OUT, IN], {CPU: 24.0}, 2, 2, "the minimum is 2"),
        ([OUT, IN], {CPU: 24.0}, 1, 2, "the minimum is 2"),
        ([OUT, IN], {CPU: 24.0}, 9, 8, "the maximum is 8"),
        ([], {}, 3, 3, "no rules"),
        # The largest number counts.
        ([SLOW, OUT], {CPU: 71.0, LATENCY: 71.0}, 3, 5, "Cpu"),
        ([SLOW, OUT, IN], {CPU: 1.0, LATENCY: 71.0}, 3, 4, "RequestLatency of endpoint pets is 71"),
        # All rules to scale in must fire, and the smallest step counts.
        ([IN, rule(LATENCY, "<", 10, "Decrease")], {CPU: 1.0, LATENCY: 11.0}, 4, 4, "not all rules"),
        ([HALVE, rule(LATENCY, "<", 10, "Decrease")], {CPU: 1.0, LATENCY: 9.0}, 8, 7, "and RequestLatency"),
        ([HALVE], {CPU: 1.0}, 8, 4, "(< 25)"),
        ([HALVE], {CPU: 1.0}, 3, 2, "(< 25)"),
        # Not if it would grow again: 3 x 20 / 2 = 30.
        ([rule(CPU, ">", 29, "Increase"), IN], {CPU: 20.0}, 3, 3, "at 2, CpuUtilizationPercentage is 30"),
        ([rule(CPU, ">", 31, "Increase"), IN], {CPU: 20.0}, 3, 2, "(< 25)"),
        ([rule(LATENCY, ">", 20, "Increase"), rule(LATENCY, "<", 15, "Decrease")], {LATENCY: 14.0}, 3, 2, "(< 15)"),
        (
            [
                rule("RequestsPerMinute", ">", 100, "Increase", dividePerInstance=True),
                rule("RequestsPerMinute", "<", 90, "Decrease", dividePerInstance=True),
            ],
            {"RequestsPerMinute": 240.0},
            *(3, 3, "at 2, RequestsPerMinute of endpoint pets is 120 (> 100) would scale out again"),
        ),
        # No data: out to the default, never in; a rule with data still scales out.
        ([OUT, IN], {CPU: None}, 3, 4, "no data, so the default of 4"),
        ([OUT, IN], {CPU: None}, 6, 6, "nothing is taken away"),
        ([IN, SLOW], {CPU: 1.0, LATENCY: None}, 6, 6, "RequestLatency: no data"),
        ([OUT, SLOW], {CPU: 71.0, LATENCY: None}, 6, 8, "(> 70)"),
        # An exact number has no direction of its own.
        ([rule(CPU, ">", 70, "None", "6", type="ExactCount")], {CPU: 71.0}, 3, 6, "(> 70)"),
        ([rule(CPU, "<", 25, "None", "3", type="ExactCount")], {CPU: 1.0}, 6, 3, "(< 25)"),
        ([rule(CPU, ">", 70, "Increase", "3", type="ExactCount")], {CPU: 71.0}, 6, 6, "no"),
        ([rule(CPU, ">", 70, "Increase", "10", type="PercentChangeCount")], {CPU: 71.0}, 3, 4, "(> 70)"),
    ],
)
def test_evaluates(rules: Any, values: dict[str, float | None], count: int, wanted: int, reason: str) -> None:
    found = evaluated(rules, values, count)
    assert (found.count, reason in found.reason) == (wanted, True), found


@pytest.mark.parametrize(
    ("value", "since", "wanted"), [(71.0, 299, 4), (71.0, 300, 6), (1.0, 299, 4), (1.0, 300, 3), (None, 1, 4)]
)
def test_one_cooldown_for_both_directions(value: float | None, since: float, wanted: int) -> None:
    assert evaluated([OUT, IN], {CPU: value}, 4, since).count == wanted


RULES = st.builds(
    rule,
    st.sampled_from([CPU, LATENCY, "RequestsPerMinute"]),
    st.sampled_from("<>"),
    st.integers(0, 100).map(float),
    st.sampled_from(["Increase", "Decrease"]),
    st.integers(1, 100).map(str),
    type=st.sampled_from(["ChangeCount", "PercentChangeCount", "ExactCount"]),
    dividePerInstance=st.booleans(),
)
VALUES = st.none() | st.floats(0, 200)


@given(st.lists(RULES, max_size=10), st.lists(VALUES, min_size=10, max_size=10), st.integers(0, 12), st.floats(0, 900))
def test_the_number_stays_in_its_limits_and_is_reached(
    rules: list[dict[str, Any]], numbers: list[float | None], count: int, since: float
) -> None:
    found = setting(profile("default", 2, 8, 4, *rules))
    values: dict[MetricTrigger, float | None] = dict(zip(evaluation.triggers(found, 2e9), numbers, strict=False))
    outcome = evaluation.evaluate(found, values, 2e9, count, 2e9 - since)
    assert 2 <= outcome.count <= 8
    assert outcome.reason
    if any(value is None for value in values.values()):
        assert outcome.count >= min(count, 8)  # Never fewer without data.
    if 2 <= outcome.count < count <= 8:
        again = evaluation.evaluate(found, values, 2e9, outcome.count, 0.0)
        # Those of single instances are other values then.
        same = all(one.metric != CPU and not one.divide_per_instance for one in values)
        assert not same or again.count <= outcome.count  # It does not grow again at once.


@given(st.binary(max_size=40), st.sampled_from([TRIGGER, ACTION, "profiles/0", "profiles/0/capacity"]))
def test_any_value_is_read_or_refused(junk: bytes, place: str) -> None:
    for value in (junk.decode("latin-1"), [junk.hex()], {junk.hex(): None}, 1e300, True):
        body = changed(place, value)
        try:
            setting_reading.read("as", body, WS)
        except Error as error:
            assert error.violations
