"""Metrics of the proxies in the format of Azure Monitor.

Decides the series of an answer and its shape, which is that of Azure Monitor's REST API (Metrics -
List). Pure. Must not know where the counters come from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from amphitrite.controlplane.metrics.azure_names import METRICS, NAMESPACE, Metric
from amphitrite.controlplane.metrics.azure_query import Query
from amphitrite.controlplane.metrics.minute_windows import Counters, merge, sum_counters

#: The dimensions of requests, and how many requests had them.
_Requests = tuple[Mapping[str, str], float]


def answer(
    query: Query, arm_id: str, location: str, minutes: Mapping[int, Counters], namespace: str = NAMESPACE
) -> dict[str, Any]:
    """Azure Monitor's answer. ``arm_id``: of the resource. ``minutes``: the counters of each minute
    since the epoch."""
    windows = [
        (start, end, sum_counters(minutes.get(m, {}) for m in range(start // 60, (end - 1) // 60 + 1)))
        for start, end in query.points
    ]
    return {
        "cost": 0,
        "timespan": f"{_time(query.start)}/{_time(query.end)}",
        "interval": query.interval,
        "namespace": namespace,
        "resourceregion": location,
        "value": [
            {
                "id": f"{arm_id}/providers/Microsoft.Insights/metrics/{name}",
                "type": "Microsoft.Insights/metrics",
                "name": _localized(name),
                "displayDescription": METRICS[name].description,
                "unit": METRICS[name].unit,
                "timeseries": [
                    _series(query, name, filters, windows) for filters in _series_filters(query, name, windows)
                ],
                "errorCode": "Success",
            }
            for name in query.metrics
        ],
    }


_Windows = Sequence[tuple[int, int, Counters]]


def _series(query: Query, name: str, filters: Mapping[str, str], windows: _Windows) -> dict[str, Any]:
    return {
        "metadatavalues": [{"name": _localized(dimension), "value": value} for dimension, value in filters.items()],
        "data": [_point(query, METRICS[name], filters, *window) for window in windows],
    }


def _point(
    query: Query, metric: Metric, filters: Mapping[str, str], start: int, end: int, counted: Counters
) -> dict[str, Any]:
    fields = _fields(metric, filters, counted)
    point: dict[str, Any] = {"timeStamp": _time(start)}
    value = metric.value(fields, end - start)
    if value is not None and "Average" in query.aggregations:
        point["average"] = round(value, 3)
    if "Total" in query.aggregations:
        point["total"] = fields["requests"]
    return point


def _fields(metric: Metric, filters: Mapping[str, str], counted: Counters) -> dict[str, float]:
    """The counters of a series, and its number of requests."""
    wanted = filters.get("deployment")
    mine = {d: f for d, f in counted.items() if wanted is None or d.lower() == wanted.lower()}
    if "statusCode" not in metric.dimensions:
        # The latency of refused requests says nothing about a model.
        return merge(f for d, f in mine.items() if d or metric.unit != "MilliSeconds")
    return {"requests": sum(n for dimensions, n in requests(mine) if _fits(dimensions, filters))}


def _fits(dimensions: Mapping[str, str], filters: Mapping[str, str]) -> bool:
    return all(dimensions[name].lower() == value.lower() for name, value in filters.items())


def _series_filters(query: Query, name: str, windows: _Windows) -> list[dict[str, str]]:
    """The filters of a metric's series: one, or with ``*`` one for each combination of values that
    occurs."""
    split = [dimension for dimension, value in query.filter.items() if value == "*"]
    fixed = {dimension: value for dimension, value in query.filter.items() if value != "*"}
    if not split:
        return [fixed]
    whole = sum_counters(counted for *_, counted in windows)
    if METRICS[name].dimensions == ("deployment",):
        return [{"deployment": deployment} for deployment, fields in sorted(whole.items()) if deployment and fields]
    combinations = {tuple(dims[d] for d in split) for dims, n in requests(whole) if n and _fits(dims, fixed)}
    return [{**fixed, **dict(zip(split, values, strict=True))} for values in sorted(combinations)]


def requests(counted: Counters) -> Iterator[_Requests]:
    """The requests by outcome. A 424 is split by the model's own code, which another
    field counts."""
    for deployment, fields in counted.items():
        failures = {name.removeprefix("model/"): n for name, n in fields.items() if name.startswith("model/")}
        for name, n in fields.items():
            kind, *rest = name.split("/")
            if kind != "requests":
                continue
            code, reason = rest
            by_model = {"" if reason else code: n}
            if code == "424":
                by_model = {**failures, "": max(n - sum(failures.values()), 0.0)}
            for model_code, of_these in by_model.items():
                dimensions = (deployment, code, f"{code[0]}xx", model_code)
                yield dict(zip(METRICS["RequestsPerMinute"].dimensions, dimensions, strict=True)), of_these


def _localized(name: str) -> dict[str, str]:
    return {"value": name, "localizedValue": name}


def _time(at: int) -> str:
    return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
