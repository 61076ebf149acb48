"""Queries of Azure Monitor's metrics, and their meaning.

Decides the parameters of a query and how each is parsed. Must not know counters or answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from amphitrite.controlplane.metrics.azure_names import METRICS, NAMESPACE, UNSUPPORTED_METRICS
from amphitrite.schemas import durations
from amphitrite.schemas.errors import Error

#: Seconds of a data point. FULL: one point for the whole window.
INTERVALS = {"PT1M": 60, "PT5M": 300, "PT15M": 900, "PT30M": 1800, "PT1H": 3600, "FULL": 0}
_TIMESPAN = "PT1H"


@dataclass(frozen=True, slots=True)
class Query:
    """``start``, ``end``: seconds since the epoch; the start is a full minute. ``interval``: a key
    of ``INTERVALS``. ``filter``: dimension -> value, or ``*`` for a series for each value."""

    metrics: tuple[str, ...]
    aggregations: tuple[str, ...]
    start: int
    end: int
    interval: str
    filter: Mapping[str, str]

    @property
    def points(self) -> Iterator[tuple[int, int]]:
        """The start and end of each data point."""
        step = INTERVALS[self.interval] or max(self.end - self.start, 60)
        for start in range(self.start, max(self.end, self.start + 1), step):
            yield start, min(start + step, max(self.end, start + 1))


def parse(query_parameters: Mapping[str, str], now: float, keep_s: int, namespace: str = NAMESPACE) -> Query:
    """The query of a request's parameters. Raises Error BadArgument with what is available."""
    parameters = ("api-version", "metricnames", "metricnamespace", "timespan", "interval", "aggregation", "$filter")
    for name in query_parameters:
        if name.lower() not in parameters:
            raise _bad(name, f"{name} is not supported; allowed: {', '.join(parameters)}")
    values = {name.lower(): value for name, value in query_parameters.items()}
    if values.get("metricnamespace", namespace).lower() != namespace.lower():
        raise _bad("metricnamespace", f"the only namespace is {namespace}")
    metrics = _metrics(values.get("metricnames", "RequestsPerMinute"))
    start, end = _timespan(values.get("timespan", _TIMESPAN), now, keep_s)
    interval = _one_of("interval", values.get("interval", "PT1M"), INTERVALS)
    requested = [
        _one_of("aggregation", word, ("Average", "Total")) for word in _split_list(values.get("aggregation", ""))
    ]
    query = Query(metrics, tuple(requested) or ("Average",), start, end, interval, _filter(values.get("$filter", "")))
    for name in metrics:
        _require("aggregation", name, query.aggregations, METRICS[name].aggregations)
        _require("$filter", name, tuple(query.filter), METRICS[name].dimensions)
    return query


def _metrics(text: str) -> tuple[str, ...]:
    by_key = {name.lower(): name for name in METRICS}
    for name in _split_list(text):
        for unsupported, reason in UNSUPPORTED_METRICS.items():
            if name.lower() == unsupported.lower():
                raise _bad("metricnames", f"{unsupported} is not available: {reason}; available: {', '.join(METRICS)}")
        if name.lower() not in by_key:
            raise _bad("metricnames", f"there is no metric {name[:80]!r}; available: {', '.join(METRICS)}")
    return tuple(dict.fromkeys(by_key[name.lower()] for name in _split_list(text)))


def _timespan(text: str, now: float, keep_s: int) -> tuple[int, int]:
    """``PT1H``, or two times separated by a slash, of which one may be a duration (ISO 8601)."""
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
        raise _bad("timespan", f"timespan is {text[:80]!r}; use PT1H or <start>/<end>: {exc}") from exc
    end = min(end, int(now))
    if start >= end:
        raise _bad("timespan", f"timespan is {text[:80]!r}: it ends before it begins, or is in the future")
    if start < now - keep_s - 60:
        raise _bad("timespan", f"timespan is {text[:80]!r}: metrics are kept for {keep_s // 3600} hours")
    return start // 60 * 60, end


def _moment(text: str) -> int:
    # An unescaped plus arrives as a space. Python before 3.11 does not parse Z.
    moment = datetime.fromisoformat(re.sub(r"\.\d+", "", text.strip()).replace(" ", "+").replace("Z", "+00:00"))
    return int((moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp())


_CONDITION = re.compile(r"\s*(\w+)\s+eq\s+'([^']*)'\s*", re.IGNORECASE)


def _filter(text: str) -> dict[str, str]:
    dimensions = {name.lower(): name for name in METRICS["RequestsPerMinute"].dimensions}
    conditions: dict[str, str] = {}
    for part in re.split(r"\sand\s", text, flags=re.IGNORECASE) if text.strip() else ():
        match = _CONDITION.fullmatch(part)
        name = dimensions.get(match[1].lower()) if match else None
        if match is None or name is None or name in conditions:
            example = "deployment eq 'blue' and statusCode eq '*'"
            raise _bad("$filter", f"$filter is {text[:120]!r}; use conditions such as {example}; each of "
                                  f"{', '.join(dimensions.values())} may occur once")  # fmt: skip
        conditions[name] = match[2]
    return conditions


def _require(parameter: str, metric: str, requested: Sequence[str], available: Sequence[str]) -> None:
    for one in requested:
        if one not in available:
            raise _bad(parameter, f"{parameter}: {metric} has no {one}; it has {', '.join(available)}")


def _one_of(parameter: str, text: str, words: Sequence[str] | Mapping[str, int]) -> str:
    for word in words:
        if word.lower() == text.lower():
            return word
    raise _bad(parameter, f"{parameter} is {text[:40]!r}; allowed: {', '.join(words)}")


def _split_list(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _bad(target: str, message: str) -> Error:
    return Error("BadArgument", message, target=target)
