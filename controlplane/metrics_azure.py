"""The proxies' numbers under the names of Azure Monitor.

Decides which metrics, dimensions and aggregations there are, what a query may say, and the shape of the answer, which
is that of Azure Monitor's REST API. Pure. Must not know where the numbers come from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from amphitrite.controlplane.metrics_windows import Counted, merged, percentile, timed, total
from amphitrite.schemas import durations
from amphitrite.schemas.errors import Error

NAMESPACE = "Microsoft.MachineLearningServices/workspaces/onlineEndpoints"
#: Seconds of a data point; FULL is one point for the whole window.
INTERVALS = {"PT1M": 60, "PT5M": 300, "PT15M": 900, "PT30M": 1800, "PT1H": 3600, "FULL": 0}
_TIMESPAN = "PT1H"

#: One request's dimensions, and how many requests had these.
_Requests = tuple[Mapping[str, str], float]


@dataclass(frozen=True, slots=True)
class Metric:
    """``value``: of the counted fields of one series in so many seconds; None where nothing was counted."""

    unit: str
    about: str
    aggregations: tuple[str, ...]
    dimensions: tuple[str, ...]
    value: Callable[[Mapping[str, float], float], float | None]


def _latency(share: float) -> Metric:
    def value(fields: Mapping[str, float], seconds: float) -> float | None:
        found = percentile(fields, share)
        return None if found is None else found * 1000

    about = f"Latency that {share:.0%} of the requests to a deployment did not exceed."
    return Metric("MilliSeconds", about, ("Average",), ("deployment",), value)


def _mean(fields: Mapping[str, float], seconds: float) -> float | None:
    count = timed(fields)
    return fields.get("microseconds", 0.0) / count / 1000 if count else None


METRICS: Mapping[str, Metric] = {
    "RequestsPerMinute": Metric(
        "Count",
        "Requests, by what was answered.",
        ("Average", "Total"),
        ("deployment", "statusCode", "statusCodeClass", "modelStatusCode"),
        lambda fields, seconds: fields["requests"] * 60 / seconds,
    ),
    "RequestLatency": Metric(
        "MilliSeconds", "Mean latency of requests to a deployment.", ("Average",), ("deployment",), _mean
    ),
    "RequestLatency_P50": _latency(0.5),
    "RequestLatency_P90": _latency(0.9),
    "RequestLatency_P95": _latency(0.95),
    "RequestLatency_P99": _latency(0.99),
    "NetworkBytes": Metric(
        "BytesPerSecond",
        "Bytes of requests' and answers' bodies.",
        ("Average",),
        ("deployment",),
        lambda fields, seconds: (fields.get("received", 0.0) + fields.get("sent", 0.0)) / seconds,
    ),
}
_CONNECTIONS = "a connection carries requests to any endpoint, so none is one endpoint's"
_OF_INSTANCES = "Triton's own metrics of each instance (nv_*) tell it"
_NOT_COUNTED = "it is not counted here"
#: Azure's metrics of an endpoint or of a deployment that are not given: the reason.
_NOT_GIVEN = {
    "ConnectionsActive": _CONNECTIONS,
    "NewConnectionsPerSecond": _CONNECTIONS,
    "DataCollectionEventsPerMinute": "data are not collected here",
    "DataCollectionErrorsPerMinute": "data are not collected here",
    "CpuUtilizationPercentage": _OF_INSTANCES,
    "CpuMemoryUtilizationPercentage": _OF_INSTANCES,
    "GpuUtilizationPercentage": _OF_INSTANCES,
    "GpuMemoryUtilizationPercentage": _OF_INSTANCES,
    "GpuEnergyJoules": _OF_INSTANCES,
    "DiskUtilization": _NOT_COUNTED,
    "DeploymentCapacity": _NOT_COUNTED,
}


@dataclass(frozen=True, slots=True)
class Query:
    """``start``, ``end``: seconds since the epoch, the start on a minute. ``interval_s``: 0 for one point. ``where``:
    dimension -> the value that counts, ``*``: each one by itself."""

    metrics: tuple[str, ...]
    aggregations: tuple[str, ...]
    start: int
    end: int
    interval: str
    where: Mapping[str, str]

    @property
    def points(self) -> Iterator[tuple[int, int]]:
        """The beginning and the end of each point."""
        step = INTERVALS[self.interval] or max(self.end - self.start, 60)
        for start in range(self.start, max(self.end, self.start + 1), step):
            yield start, min(start + step, max(self.end, start + 1))


def parse(given: Mapping[str, str], now: float, keep_s: int) -> Query:
    """The query of a request's parameters. Raises Error BadArgument, which names what is offered."""
    known = ("api-version", "metricnames", "metricnamespace", "timespan", "interval", "aggregation", "$filter")
    for name in given:
        if name.lower() not in known:
            raise _bad(name, f"{name} is not offered; known are {', '.join(known)}")
    values = {name.lower(): value for name, value in given.items()}
    namespace = values.get("metricnamespace", NAMESPACE)
    if namespace.lower() != NAMESPACE.lower():
        raise _bad("metricnamespace", f"there is one namespace: {NAMESPACE}")
    metrics = _metrics(values.get("metricnames", "RequestsPerMinute"))
    start, end = _timespan(values.get("timespan", _TIMESPAN), now, keep_s)
    interval = _one_of("interval", values.get("interval", "PT1M"), INTERVALS)
    asked = [_one_of("aggregation", word, ("Average", "Total")) for word in _words(values.get("aggregation", ""))]
    query = Query(metrics, tuple(asked) or ("Average",), start, end, interval, _where(values.get("$filter", "")))
    for name in metrics:
        _require("aggregation", name, query.aggregations, METRICS[name].aggregations)
        _require("$filter", name, tuple(query.where), METRICS[name].dimensions)
    return query


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


def _metrics(text: str) -> tuple[str, ...]:
    by_key = {name.lower(): name for name in METRICS}
    for name in _words(text):
        for known, reason in _NOT_GIVEN.items():
            if name.lower() == known.lower():
                raise _bad("metricnames", f"{known} is not given: {reason}; offered are {', '.join(METRICS)}")
        if name.lower() not in by_key:
            raise _bad("metricnames", f"there is no metric {name[:80]!r}; offered are {', '.join(METRICS)}")
    return tuple(dict.fromkeys(by_key[name.lower()] for name in _words(text)))


def _timespan(text: str, now: float, keep_s: int) -> tuple[int, int]:
    """``PT1H``, or two times with a slash between them, of which one may be a duration."""
    first, slash, second = text.partition("/")
    try:
        if not slash:
            end = int(now)
            start = end - durations.to_seconds(first)
        elif second.startswith("P"):
            start = _moment(first)
            end = start + durations.to_seconds(second)
        else:
            end = _moment(second)
            start = end - durations.to_seconds(first) if first.startswith("P") else _moment(first)
    except ValueError as exc:
        raise _bad("timespan", f"timespan is {text[:80]!r}: PT1H, or <start>/<end>: {exc}") from exc
    end = min(end, int(now))
    if start >= end:
        raise _bad("timespan", f"timespan is {text[:80]!r}: it ends before it begins, or lies in the future")
    if start < now - keep_s - 60:
        raise _bad("timespan", f"timespan is {text[:80]!r}: numbers are kept for {keep_s // 3600} hours")
    return start // 60 * 60, end


def _moment(text: str) -> int:
    # A plus that nobody has escaped arrives as a space; Python before 3.11 does not know Z.
    moment = datetime.fromisoformat(re.sub(r"\.\d+", "", text.strip()).replace(" ", "+").replace("Z", "+00:00"))
    return int((moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp())


_CONDITION = re.compile(r"\s*(\w+)\s+eq\s+'([^']*)'\s*", re.IGNORECASE)


def _where(text: str) -> dict[str, str]:
    dimensions = {name.lower(): name for name in METRICS["RequestsPerMinute"].dimensions}
    found: dict[str, str] = {}
    for part in re.split(r"\sand\s", text, flags=re.IGNORECASE) if text.strip() else ():
        match = _CONDITION.fullmatch(part)
        name = dimensions.get(match[1].lower()) if match else None
        if match is None or name is None or name in found:
            example = "deployment eq 'blue' and statusCode eq '*'"
            raise _bad("$filter", f"$filter is {text[:120]!r}: conditions such as {example}, each dimension once, of "
                                  f"{', '.join(dimensions.values())}")  # fmt: skip
        found[name] = match[2]
    return found


def _require(parameter: str, metric: str, asked: Sequence[str], offered: Sequence[str]) -> None:
    for one in asked:
        if one not in offered:
            raise _bad(parameter, f"{parameter}: {metric} has no {one}; it has {', '.join(offered)}")


def _one_of(parameter: str, text: str, words: Sequence[str] | Mapping[str, int]) -> str:
    for word in words:
        if word.lower() == text.lower():
            return word
    raise _bad(parameter, f"{parameter} is {text[:40]!r}; allowed: {', '.join(words)}")


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _bad(target: str, message: str) -> Error:
    return Error("BadArgument", message, target=target)


def _localized(name: str) -> dict[str, str]:
    return {"value": name, "localizedValue": name}


def _time(at: int) -> str:
    return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
