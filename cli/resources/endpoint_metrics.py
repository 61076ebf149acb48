"""An endpoint's metrics as rows, from the control plane's metrics API.

Decides which queries a view needs and which rows it has. Must not know how metrics are counted.
Outside contract: Azure Monitor's REST API ("Metrics - List").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from amphitrite.cli.resources.lookups import endpoint_path

if TYPE_CHECKING:
    from amphitrite.cli.session.rest_client import Client

_API_VERSION = "2024-02-01"
_PERCENTILES = {"RequestLatency_P50": "p50_ms", "RequestLatency_P95": "p95_ms", "RequestLatency_P99": "p99_ms"}
#: The deployment of requests that were refused before routing.
_REFUSED = "-"


def totals(client: Client, endpoint: str, deployment: str | None, timespan: str) -> list[dict[str, Any]]:
    """A row for each deployment with requests in ``timespan``; latencies in milliseconds.

    ``errors``: responses other than 2xx and 3xx, and requests that the client cancelled.
    """
    where = {"deployment": deployment or "*"}
    counted = _query(
        client, endpoint, ["RequestsPerMinute"], timespan, "FULL", {**where, "statusCodeClass": "*"}, "Total"
    )
    rows: dict[str, dict[str, Any]] = {}
    for series in _series(counted, "RequestsPerMinute"):
        row = rows.setdefault(series.dimensions["deployment"], {"requests": 0, "errors": 0})
        number = sum(int(point["total"]) for point in series.points)
        row["requests"] += number
        row["errors"] += 0 if series.dimensions["statusCodeClass"] in ("2xx", "3xx") else number
    latencies = _query(client, endpoint, list(_PERCENTILES), timespan, "FULL", where)
    for metric, name in _PERCENTILES.items():
        for series in _series(latencies, metric):
            for point in series.points:
                if "average" in point and series.dimensions["deployment"] in rows:
                    rows[series.dimensions["deployment"]][name] = point["average"]
    return [{"deployment": name or _REFUSED, **row} for name, row in sorted(rows.items(), key=lambda i: (not i[0], i))]


def time_series(
    client: Client,
    endpoint: str,
    metrics: Sequence[str],
    deployment: str | None,
    by: Sequence[str],
    timespan: str,
    interval: str,
) -> list[dict[str, Any]]:
    """A row for each time and each value of the dimensions ``by``; a column for each metric."""
    where = {**({} if deployment is None else {"deployment": deployment}), **{dimension: "*" for dimension in by}}
    answer = _query(client, endpoint, metrics, timespan, interval, where)
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for metric in answer["value"]:
        name = metric["name"]["value"]
        for series in _series(answer, name):
            dimensions = {d: v or _REFUSED for d, v in series.dimensions.items() if where[d] == "*"}
            for point in series.points:
                row = rows.setdefault(
                    (point["timeStamp"], *dimensions.values()), {"time": point["timeStamp"], **dimensions}
                )
                row[name] = point.get("average")
    names = [metric["name"]["value"] for metric in answer["value"]]
    return [{**row, **{name: row.get(name) for name in names}} for _, row in sorted(rows.items(), key=lambda i: i[0])]


def has_numbers(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether any row has a number other than 0."""
    return any(isinstance(value, int | float) and value for row in rows for value in row.values())


def key_usage(client: Client, endpoint: str) -> list[dict[str, Any]]:
    """A row for each key of the endpoint, or for its tokens.

    ``last_used``: None if it was never used.
    """
    answer = client.send("GET", f"{endpoint_path(client, endpoint)}/keyUsage").json()
    return [{"key": use["key"], "last_used": use["lastUsedTime"]} for use in answer["value"]]


class _Series:
    """One time series: its dimensions by name, its points."""

    def __init__(self, value: Mapping[str, Any]) -> None:
        self.dimensions = {one["name"]["value"]: one["value"] for one in value["metadatavalues"]}
        self.points: Sequence[Mapping[str, Any]] = value["data"]


def _series(answer: Mapping[str, Any], metric: str) -> list[_Series]:
    return [
        _Series(series) for one in answer["value"] if one["name"]["value"] == metric for series in one["timeseries"]
    ]


def _query(
    client: Client,
    endpoint: str,
    metrics: Sequence[str],
    timespan: str,
    interval: str,
    where: Mapping[str, str],
    aggregation: str = "Average",
) -> dict[str, Any]:
    parameters = {
        "api-version": _API_VERSION,
        "metricnames": ",".join(metrics),
        "timespan": timespan,
        "interval": interval,
        "aggregation": aggregation,
        "$filter": " and ".join(f"{dimension} eq '{value}'" for dimension, value in where.items()),
    }
    address = f"{endpoint_path(client, endpoint)}/providers/microsoft.insights/metrics"
    body: dict[str, Any] = client.send("GET", address, params=parameters).json()
    return body
