"""The proxies' numbers over HTTP: reported, for Prometheus, and under Azure's names."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from amphitrite.controlplane.core.observed.status import Ref
from amphitrite.controlplane.core.scaling.scales import ScaleChange
from amphitrite.dataplane.metrics.counters import KEEP_S

from .conftest import WS

AGENT = "/dataplane/v1/agents"
GOLDEN = Path(__file__).parent / "data" / "metrics.txt"
QUERY = f"{WS}/onlineEndpoints/ep1/providers/Microsoft.Insights/metrics"
#: 2,000 requests of 0.5 to 2 ms and one each that failed in the model, timed out, was refused.
BLUE = {
    "requests/200/": 2000, "requests/424/ModelError": 3, "requests/408/RequestTimeout": 1, "model/400": 2,
    "model/500": 1, "le/0": 1000, "le/1": 1000, "le/26": 4, "microseconds": 802_000_000.5, "received": 6000,
    "sent": 60_000, "retries": 1, "copies/200": 7,
    "answers/compared": 40, "answers/differ": 3, "answers/disagree": 1, "answers/dropped": 2, "answers/failed": 1,
}  # fmt: skip
#: Of a proxy on which nothing is in flight, and whose users show no key.
IDLE: dict[str, Any] = {"in_flight": {}, "used": {}}


def numbers(began: float, **more: Any) -> dict[str, Any]:
    counters = {"": {"": {"requests/404/ResourceNotFound": 9}}, "ep1": {"": {"requests/401/AuthenticationFailed": 5}}}
    counters["ep1"] |= {"blue": BLUE, **more}
    in_flight, waiting = {"ep1": {"blue": 2}}, {"ep1": {"blue": 3}}
    return {"began": began, "counters": counters, "in_flight": in_flight, "used": {}, "waiting": waiting}


def report(world: Any, agent: str, body: dict[str, Any]) -> None:
    assert world.client.put(f"{AGENT}/{agent}", json={}).status_code == 204
    answer = world.client.put(f"{AGENT}/{agent}/metrics", json=body)
    assert answer.status_code == 204, answer.text


def test_prometheus_is_told_of_every_live_proxy(world: Any, request: pytest.FixtureRequest) -> None:
    report(world, "gone", numbers(world.now[0]))
    world.now[0] += 60
    report(world, 'quoting"\\', {"began": 1, "counters": {}, **IDLE})
    world.model()
    world.endpoint()
    scaling = {"scaleType": "TargetUtilization", "maxInstances": 9, "mode": "Recommend"}
    assert world.deployment(count=2, scaleSettings=scaling).status_code == 201
    before = world.store.scales()[Ref("ep1", "blue")]
    world.store.set_scale(ScaleChange(Ref("ep1", "blue"), before, replace(before, recommended=7)))
    secondary = world.store.get_keys("ep1")[1].fingerprint()
    report(
        world,
        "one",
        {
            **numbers(world.now[0]),
            "used": {"ep1": {secondary: world.now[0], "f" * 16: 1}},
            "differences": {"ep1": {"blue": {"a:0": 0.00012, 'b"': 1e18}}},
        },
    )
    answer = world.client.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    text = re.sub('version="[^"]*"', 'version="1.2.3"', answer.text)
    if request.config.getoption("--update-golden"):
        GOLDEN.write_text(text)
    assert GOLDEN.read_text() == text


def test_prometheus_shows_a_token(world: Any) -> None:
    assert world.client.get("/metrics", headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert world.client.get("/metrics", headers={"Authorization": ""}).status_code == 401


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "an object is needed"),
        ({"began": 1, "counters": {"ep1": 5}, "in_flight": {}}, "an object is needed"),
        ({"began": 1, "counters": {"ep1": {"blue": {"le/x": 1}}}, "in_flight": {}}, "'le/x' is not a name"),
        ({"began": 1, "counters": {'a"b': {"": {}}}, "in_flight": {}}, "is not a name"),
        ({"began": 1, "counters": {"ep1": {"": {"sent": -1}}}, "in_flight": {}}, "'-1' is not a number"),
        ({"began": 1, "counters": {"ep1": {"": {"sent": True}}}, "in_flight": {}}, "'True' is not a number"),
        ({"began": None, "counters": {}, "in_flight": {}, "used": {}}, "'None' is not a number"),
        ({"began": 1, "counters": {}, "in_flight": {"ep1": {"blue": "2"}}}, "'2' is not a number"),
        ({"began": 1, "counters": {}, "in_flight": {}}, "an object is needed"),
        ({"began": 1, "counters": {}, "in_flight": {}, "used": {"ep1": {"key": 1}}}, "'key' is not a name"),
        ({"began": 1, "counters": {}, "in_flight": {}, "used": {"ep1": {"token": "now"}}}, "'now' is not a number"),
        ({"began": 1, "counters": {}, **IDLE, "differences": {"ep1": {"blue": 1}}}, "an object is needed"),
        ({"began": 1, "counters": {}, **IDLE, "differences": {"ep1": {"blue": {"": 1}}}}, "name of a tensor"),
        ({"began": 1, "counters": {}, **IDLE, "differences": {"ep1": {"blue": {"a" * 129: 1}}}}, "name of a tensor"),
        ({"began": 1, "counters": {}, **IDLE, "differences": {"ep1": {"blue": {"a\n": 1}}}}, "name of a tensor"),
        ({"began": 1, "counters": {}, **IDLE, "differences": {"ep1": {"blue": {"a": 1e18 * 2}}}}, "not a difference"),
    ],
)
def test_what_no_agent_says_is_refused(world: Any, body: dict[str, Any], said: str) -> None:
    error = world.client.put(f"{AGENT}/one/metrics", json=body).json()["error"]
    assert error["code"] == "BadArgument" and said in error["message"]
    assert "amphitrite_requests_total{" not in world.client.get("/metrics").text


def ask(world: Any, **parameters: str) -> Any:
    named = {"$filter" if name == "where" else name: value for name, value in parameters.items()}
    return world.client.get(QUERY, params={"api-version": "2024-02-01", **named})


def shown(answer: Any) -> dict[str, dict[str, list[Any]]]:
    """metric -> the values of its dimensions -> what its points say."""
    assert answer.status_code == 200, answer.text
    return {
        metric["name"]["value"]: {
            " ".join(one["value"] or "-" for one in series["metadatavalues"]): [
                point.get("average", point.get("total")) for point in series["data"]
            ]
            for series in metric["timeseries"]
        }
        for metric in answer.json()["value"]
    }


@pytest.fixture
def counted(world: Any) -> Any:
    """Two proxies since three minutes; the second began anew a minute ago and one of them is idle
    since."""
    world.endpoint()
    world.now[0] = world.now[0] // 60 * 60
    began = world.now[0]
    report(
        world,
        "one",
        {"began": began, "counters": {"ep1": {"blue": {"requests/200/": 10, "le/0": 10}}}, **IDLE},
    )
    report(world, "two", numbers(began - KEEP_S))
    world.now[0] += 60
    report(
        world,
        "one",
        {"began": began, "counters": {"ep1": {"blue": {"requests/200/": 16, "le/0": 16}}}, **IDLE},
    )
    report(world, "two", numbers(began - KEEP_S, green={"requests/200/": 4, "requests/503/NoHealthyInstance": 1}))
    world.now[0] += 60
    report(world, "two", {"began": world.now[0], "counters": {"ep1": {"blue": {"requests/200/": 3}}}, **IDLE})
    world.now[0] += 30
    return world


@pytest.mark.parametrize(
    ("parameters", "want"),
    [
        # What a proxy had counted long before its first row is no part of that minute.
        ({}, {"RequestsPerMinute": {"": [10, 11, 6]}}),
        ({"aggregation": "total"}, {"RequestsPerMinute": {"": [10, 11, 3]}}),
        ({"interval": "full", "aggregation": "Total"}, {"RequestsPerMinute": {"": [24]}}),
        ({"where": "deployment eq 'BLUE'"}, {"RequestsPerMinute": {"BLUE": [10, 6, 6]}}),
        ({"where": "deployment eq '*'"}, {"RequestsPerMinute": {"blue": [10, 6, 6], "green": [0, 5, 0]}}),
        (
            {"where": "deployment eq 'green' and statusCodeClass eq '*'", "interval": "FULL", "aggregation": "Total"},
            {"RequestsPerMinute": {"green 2xx": [4], "green 5xx": [1]}},
        ),
        (
            {"metricnames": "requestlatency,RequestLatency_P50", "where": "deployment eq '*'"},
            {
                "RequestLatency": {"blue": [0, 0, None], "green": [None] * 3},
                "RequestLatency_P50": {"blue": [0.5, 0.5, None], "green": [None] * 3},
            },
        ),
        ({"metricnames": "NetworkBytes"}, {"NetworkBytes": {"": [0, 0, 0]}}),
        ({"where": "statusCode eq '404'"}, {"RequestsPerMinute": {"404": [0, 0, 0]}}),
    ],
    ids=str,
)
def test_azures_names(counted: Any, parameters: dict[str, str], want: dict[str, Any]) -> None:
    found = shown(ask(counted, timespan="PT2M", **parameters))
    assert found == want


def test_every_dimension_and_percentile(world: Any) -> None:
    world.endpoint()
    world.now[0] = world.now[0] // 60 * 60 + 10
    report(world, "one", numbers(world.now[0]))
    where = "deployment eq '*' and statusCode eq '*' and modelStatusCode eq '*'"
    found = shown(ask(world, timespan="PT5S", interval="FULL", aggregation="Total", where=where))
    assert found["RequestsPerMinute"] == {
        "- 401 -": [5], "blue 200 200": [2000], "blue 408 -": [1], "blue 424 400": [2], "blue 424 500": [1],
    }  # fmt: skip
    names = "RequestLatency,RequestLatency_P50,RequestLatency_P90,RequestLatency_P95,RequestLatency_P99,NetworkBytes"
    body = ask(world, timespan="PT5S", interval="FULL", metricnames=names).json()
    points = {metric["name"]["value"]: metric["timeseries"][0]["data"][0]["average"] for metric in body["value"]}
    assert points == {
        "RequestLatency": 400.2, "RequestLatency_P50": 1.002, "RequestLatency_P90": 1.804, "RequestLatency_P95": 1.904,
        "RequestLatency_P99": 1.984, "NetworkBytes": 6600,
    }  # fmt: skip
    units = {metric["name"]["value"]: metric["unit"] for metric in body["value"]}
    assert units["NetworkBytes"] == "BytesPerSecond" and units["RequestLatency_P99"] == "MilliSeconds"
    assert body["value"][0]["id"].endswith("/onlineEndpoints/ep1/providers/Microsoft.Insights/metrics/RequestLatency")


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"metricnames": "RequestsPerSecond"}, "available: RequestsPerMinute, RequestLatency,"),
        ({"metricnames": "ConnectionsActive"}, "connections are shared by all endpoints"),
        (
            {"metricnames": "gpuutilizationpercentage"},
            "GpuUtilizationPercentage is not available: use Triton's metrics",
        ),
        ({"metricnames": "RequestLatency", "aggregation": "Total"}, "RequestLatency has no Total; it has Average"),
        ({"metricnames": "NetworkBytes", "where": "statusCode eq '200'"}, "NetworkBytes has no statusCode"),
        ({"aggregation": "Maximum"}, "allowed: Average, Total"),
        ({"interval": "PT2M"}, "allowed: PT1M, PT5M"),
        ({"timespan": "yesterday"}, "use PT1H or <start>/<end>"),
        ({"timespan": "PT0S"}, "it ends before it begins"),
        ({"timespan": "PT7H"}, "metrics are kept for 6 hours"),
        ({"where": "deployment ne 'blue'"}, "conditions such as deployment eq 'blue'"),
        ({"where": "colour eq 'blue'"}, "of deployment, statusCode, statusCodeClass, modelStatusCode"),
        ({"metricnamespace": "Microsoft.Compute"}, "the only namespace is"),
        ({"top": "5"}, "top is not supported"),
    ],
    ids=str,
)
def test_what_is_not_offered_is_refused(counted: Any, parameters: dict[str, str], said: str) -> None:
    answer = ask(counted, **parameters)
    assert answer.status_code == 400 and said in answer.json()["error"]["message"]


def test_the_window_is_told_by_its_ends_too(counted: Any) -> None:
    whole = ask(counted, timespan="PT2M").json()
    start, end = whole["timespan"].split("/")
    for timespan in (f"{start}/{end}", f"{start}/PT2M30S", f"PT2M30S/{end}"):
        assert ask(counted, timespan=timespan).json() == whole


def test_an_endpoint_that_is_not_there_has_none(world: Any) -> None:
    assert ask(world).status_code == 404
    assert world.client.get(f"{WS}/onlineEndpoints/ep1/keyUsage").status_code == 404


@pytest.mark.parametrize("mode", ["Key", "AMLToken"])
def test_when_each_key_was_last_used(world: Any, mode: str) -> None:
    world.endpoint(authMode=mode)
    names = [key.fingerprint() for key in world.store.get_keys("ep1")] if mode == "Key" else ["token"]
    usage, unused = f"{WS}/onlineEndpoints/EP1/keyUsage", {"value": [
        {"key": key, "lastUsedTime": None} for key in (("primary", "secondary") if mode == "Key" else ("token",))
    ]}  # fmt: skip
    assert world.client.get(usage).json() == unused
    used = {"ep1": {names[0]: world.now[0] + 59}}
    world.now[0] += 59
    report(world, "one", {"began": 1, "counters": {}, "in_flight": {}, "used": used})
    unused["value"][0]["lastUsedTime"] = "2027-01-15T08:00:00Z"
    assert world.client.get(usage).json() == unused
