"""``ml online-endpoint metrics``: what people read, and what is refused."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from amphitrite.dataplane.table.routing_table import Secret

from ..conftest import Stage

METRICS_PAGE = Path(__file__).parents[3] / "docs/metrics.md"


@pytest.fixture
def counted(stage: Stage) -> Stage:
    """An endpoint whose proxy has counted for two minutes."""
    (stage.directory / "ep.yml").write_text("name: ep-1\n")
    assert stage.run("endpoint", "create", "-f", "ep.yml")[0] == 0
    clock = stage.machine.clock
    clock.now = clock.now // 60 * 60 + 60
    began = clock.now
    blue = {"requests/200/": 60, "le/4": 60, "microseconds": 360_000, "received": 1, "sent": 2}
    _report(stage, began, {"blue": blue, "": {"requests/401/AuthenticationFailed": 2}})
    clock.now = began + 60
    green = {"requests/200/": 30, "requests/429/TooManyRequests": 5, "requests/0/ClientClosedRequest": 1, "le/10": 36}
    _report(stage, began, {"blue": blue, "green": {**green, "microseconds": 1_800_000}})
    clock.now = began + 119
    return stage


def _report(stage: Stage, began: float, deployments: dict[str, Any]) -> None:
    body = {"began": began, "counters": {"ep-1": deployments}, "in_flight": {}, "used": {}}
    assert stage.client.put("/dataplane/v1/agents/proxy/metrics", json=body).status_code == 204


def test_totals_of_each_deployment(counted: Stage) -> None:
    code, out, err = counted.run("online-endpoint", "metrics", "-n", "ep-1", "-o", "table")
    assert (code, err) == (0, "")
    assert out == (
        "Deployment  Requests  Errors  P50 (ms)  P95 (ms)  P99 (ms)\n"
        "----------  --------  ------  --------  --------  --------\n"
        "blue        60        0       6.0       6.9       6.98\n"
        "green       36        6       60.0      69.0      69.8\n"
        "-           2         2\n"
    )
    assert out.splitlines()[0] in METRICS_PAGE.read_text(), "the page shows another table"
    _, out, _ = counted.run("endpoint", "metrics", "-n", "EP-1", "-d", "green", "--query", "[].errors", "-o", "tsv")
    assert out == "6\n"


@pytest.mark.parametrize(("short", "iso"), [("1m", "PT1M"), ("1h30m", "PT1H30M"), ("1d", "P1D"), ("1d2h", "P1DT2H")])
def test_times_are_written_as_in_get_logs_too(counted: Stage, short: str, iso: str) -> None:
    command = ("online-endpoint", "metrics", "-n", "ep-1", "-m", "RequestsPerMinute", "--interval")
    assert counted.run(*command, "1h", "--timespan", short) == counted.run(*command, "PT1H", "--timespan", iso)


def test_how_metrics_go_on(counted: Stage) -> None:
    command = ("online-endpoint", "metrics", "-n", "ep-1", "--timespan", "PT1M", "-o", "table", "--metrics")
    code, out, err = counted.run(*command, "RequestsPerMinute", "RequestLatency_P95", "--by", "deployment")
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["Time", "Deployment", "RequestsPerMinute", "RequestLatency_P95", "(ms)"]
    times = {line[0][-4:] for line in lines[2:]}
    assert times == {":00Z"} and [line[1:] for line in lines[2:]] == [
        ["-", "2.0"], ["blue", "60.0", "6.9"], ["green", "0.0"],
        ["-", "0.0"], ["blue", "0.0"], ["green", "36.61", "69.0"],
    ]  # fmt: skip
    code, out, _ = counted.run(*command, "requestsperminute", "--interval", "FULL", "-d", "blue")
    assert code == 0 and [line.split()[1:] for line in out.splitlines()[2:]] == [["30.252"]]


def test_when_keys_were_last_used(counted: Stage) -> None:
    key = json.loads(counted.run("online-endpoint", "get-credentials", "-n", "ep-1", "-o", "json")[1])["secondaryKey"]
    now = counted.machine.clock.now
    body = {"began": now, "counters": {}, "in_flight": {}, "used": {"ep-1": {Secret(key).fingerprint(): now}}}
    assert counted.client.put("/dataplane/v1/agents/proxy/metrics", json=body).status_code == 204
    code, out, err = counted.run("online-endpoint", "metrics", "-n", "ep-1", "--keys", "-o", "table")
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert [lines[0], lines[2]] == [["Key", "Last", "used"], ["primary"]]
    used = datetime.strptime(lines[3][1], "%Y-%m-%dT%H:%M:%S%z")
    assert lines[3][0] == "secondary" and 0 <= now - used.timestamp() < 60


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-m", "ConnectionsActive"), "ConnectionsActive is not available"),
        (("--by", "deployment"), "--by and --interval need --metrics"),
        (("--keys", "-d", "blue"), "--keys cannot be combined with other options"),
        (("--timespan", "yesterday"), "PT1H or <start>/<end>"),
        (("-m", "RequestLatency", "--by", "statusCode"), "RequestLatency has no statusCode"),
        (("-d", "it's"), "use conditions such as"),
    ],
)
def test_what_is_refused(counted: Stage, arguments: tuple[str, ...], said: str) -> None:
    code, out, err = counted.run("online-endpoint", "metrics", "-n", "ep-1", *arguments)
    assert code in (1, 2) and out == "" and said in err


def test_no_endpoint_no_numbers(counted: Stage) -> None:
    code, _, err = counted.run("online-endpoint", "metrics", "-n", "nobody")
    assert code == 1 and "nobody" in err
    (counted.directory / "other.yml").write_text("name: ep-2\n")
    assert counted.run("endpoint", "create", "-f", "other.yml")[0] == 0
    assert counted.run("online-endpoint", "metrics", "-n", "ep-2", "-o", "table") == (
        *(0, "", "no requests to endpoint ep-2 in this time\n"),
    )
