"""What may be asked of Azure Monitor's metrics, and what a question means.

Decides the parameters of a query and how each is read. Must not know numbers or answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from amphitrite.controlplane.metrics.azure_names import METRICS, NAMESPACE, NOT_GIVEN
from amphitrite.schemas import durations
from amphitrite.schemas.errors import Error

#: Seconds of a data point; FULL is one point for the whole window.
INTERVALS = {"PT1M": 60, "PT5M": 300, "PT15M": 900, "PT30M": 1800, "PT1H": 3600, "FULL": 0}
_TIMESPAN = "PT1H"


@dataclass(frozen=True, slots=True)
class Query:
    """``start``, ``end``: seconds since the epoch, the start on a minute. ``interval``: a word of ``INTERVALS``.
    ``where``: dimension -> the value that counts, ``*``: each one by itself."""

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


def _metrics(text: str) -> tuple[str, ...]:
    by_key = {name.lower(): name for name in METRICS}
    for name in _words(text):
        for known, reason in NOT_GIVEN.items():
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
