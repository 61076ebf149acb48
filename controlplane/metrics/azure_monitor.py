"""The proxies' numbers under the names of Azure Monitor.

Decides the series of an answer and its shape, which is that of Azure Monitor's REST API. Pure. Must not know where the
numbers come from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from amphitrite.controlplane.metrics.azure_names import METRICS, NAMESPACE, Metric
from amphitrite.controlplane.metrics.azure_query import Query
from amphitrite.controlplane.metrics.minute_windows import Counted, merged, total

#: One request's dimensions, and how many requests had these.
_Requests = tuple[Mapping[str, str], float]


def answer(query: Query, endpoint_id: str, location: str, minutes: Mapping[int, Counted]) -> dict[str, Any]:
    """Azure Monitor's answer. ``minutes``: what was counted in each minute from the epoch on."""
    windows = [
        (start, end, total(minutes.get(m, {}) for m in range(start // 60, (end - 1) // 60 + 1)))
        for start, end in query.points
    ]
    return {
        "cost": 0,
        "timespan": f"{_time(query.start)}/{_time(query.end)}",
        "interval": query.interval,
        "namespace": NAMESPACE,
        "resourceregion": location,
        "value": [
            {
                "id": f"{endpoint_id}/providers/Microsoft.Insights/metrics/{name}",
                "type": "Microsoft.Insights/metrics",
                "name": _localized(name),
                "displayDescription": METRICS[name].about,
                "unit": METRICS[name].unit,
                "timeseries": [_series(query, name, chosen, windows) for chosen in _chosen(query, name, windows)],
                "errorCode": "Success",
            }
            for name in query.metrics
        ],
    }


_Windows = Sequence[tuple[int, int, Counted]]


def _series(query: Query, name: str, chosen: Mapping[str, str], windows: _Windows) -> dict[str, Any]:
    return {
        "metadatavalues": [{"name": _localized(dimension), "value": value} for dimension, value in chosen.items()],
        "data": [_point(query, METRICS[name], chosen, *window) for window in windows],
    }


def _point(
    query: Query, metric: Metric, chosen: Mapping[str, str], start: int, end: int, counted: Counted
) -> dict[str, Any]:
    fields = _fields(metric, chosen, counted)
    point: dict[str, Any] = {"timeStamp": _time(start)}
    value = metric.value(fields, end - start)
    if value is not None and "Average" in query.aggregations:
        point["average"] = round(value, 3)
    if "Total" in query.aggregations:
        point["total"] = fields["requests"]
    return point


def _fields(metric: Metric, chosen: Mapping[str, str], counted: Counted) -> dict[str, float]:
    """What of ``counted`` the series ``chosen`` is made of, and how many requests these were."""
    wanted = chosen.get("deployment")
    mine = {d: f for d, f in counted.items() if wanted is None or d.lower() == wanted.lower()}
    if "statusCode" not in metric.dimensions:
        # How fast others are refused says nothing of a model.
        return merged(f for d, f in mine.items() if d or metric.unit != "MilliSeconds")
    return {"requests": sum(n for dimensions, n in _requests(mine) if _fits(dimensions, chosen))}


def _fits(dimensions: Mapping[str, str], chosen: Mapping[str, str]) -> bool:
    return all(dimensions[name].lower() == value.lower() for name, value in chosen.items())


def _chosen(query: Query, name: str, windows: _Windows) -> list[dict[str, str]]:
    """The series of a metric: one, or one for each combination of values that occurs where ``*`` asks for it."""
    split = [dimension for dimension, value in query.where.items() if value == "*"]
    fixed = {dimension: value for dimension, value in query.where.items() if value != "*"}
    if not split:
        return [fixed]
    whole = total(counted for *_, counted in windows)
    if METRICS[name].dimensions == ("deployment",):
        return [{"deployment": deployment} for deployment, fields in sorted(whole.items()) if deployment and fields]
    found = {tuple(dims[d] for d in split) for dims, n in _requests(whole) if n and _fits(dims, fixed)}
    return [{**fixed, **dict(zip(split, values, strict=True))} for values in sorted(found)]


def _requests(counted: Counted) -> Iterator[_Requests]:
    """The requests of each outcome. A 424 is told apart by the model's own code, which another field counts."""
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
