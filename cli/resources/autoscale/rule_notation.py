"""The short notations of rules, as ``az monitor autoscale rule create`` has them.

Decides what ``--condition``, ``--scale`` and ``--timegrain`` mean. Must not know which metrics
there are: the server says so.
"""

from __future__ import annotations

import re
from typing import Any

from amphitrite.schemas.errors import Error

_OPERATORS = {
    "==": "Equals",
    "!=": "NotEquals",
    ">": "GreaterThan",
    ">=": "GreaterThanOrEqual",
    "<": "LessThan",
    "<=": "LessThanOrEqual",
}
_AGGREGATIONS = {"avg": "Average", "min": "Minimum", "max": "Maximum", "total": "Total", "count": "Count"}
_STATISTICS = {"avg": "Average", "min": "Min", "max": "Max", "sum": "Sum"}
_DIRECTIONS = {"to": "None", "out": "Increase", "in": "Decrease"}
_CONDITION = re.compile(
    r"""\s*(?:"(?P<namespace>[^"]+)"\s+|'(?P<quoted>[^']+)'\s+)?(?P<metric>[^<>=!]+?)\s*(?P<operator>==|!=|>=|<=|>|<)
        \s*(?P<threshold>-?\d+(?:\.\d+)?)\s+(?P<aggregation>avg|min|max|total|count)\s+(?P<period>[0-9hms]+)
        (?:\s+where\s+(?P<dimensions>.+?))?\s*""",
    re.VERBOSE | re.IGNORECASE,
)
_DIMENSION = re.compile(r"\s*(?P<name>[\w./-]+)\s*(?P<operator>==|!=)\s*(?P<values>.+?)\s*")
_PERIOD = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", re.IGNORECASE)
_CONDITION_FORM = (
    '["NAMESPACE"] METRIC {==,!=,>,>=,<,<=} THRESHOLD {avg,min,max,total,count} PERIOD '
    "[where DIMENSION {==,!=} VALUE [or VALUE ...] [and DIMENSION ...]]"
)


def condition(text: str) -> dict[str, Any]:
    """``CpuUtilizationPercentage > 70 avg 5m`` as the fields of a metric trigger. Raises Error
    UsageError."""
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise _usage("--condition", text, _CONDITION_FORM, 'such as "CpuUtilizationPercentage > 70 avg 5m"')
    namespace = match["namespace"] or match["quoted"]
    dimensions = [_dimension(one) for one in re.split(r"\s+and\s+", match["dimensions"] or "", flags=re.I) if one]
    return {
        "metricName": match["metric"].strip(),
        **({"metricNamespace": namespace} if namespace else {}),
        "operator": _OPERATORS[match["operator"]],
        "threshold": float(match["threshold"]),
        "timeAggregation": _AGGREGATIONS[match["aggregation"].lower()],
        "timeWindow": period("--condition", match["period"]),
        **({"dimensions": dimensions} if dimensions else {}),
    }


def scale(text: str) -> dict[str, Any]:
    """``out 2``, ``in 10%`` or ``to 5`` as the fields of a scale action. Raises Error
    UsageError."""
    match = re.fullmatch(r"\s*(to|out|in)\s+(?:by\s+)?(\d+)(%?)\s*", text, re.IGNORECASE)
    if match is None or (match[1].lower() == "to" and match[3]):
        raise _usage("--scale", text, "{to,in,out} VALUE[%]", 'such as "out 2", "in 10%" or "to 5"')
    kind = "ExactCount" if match[1].lower() == "to" else "PercentChangeCount" if match[3] else "ChangeCount"
    return {"direction": _DIRECTIONS[match[1].lower()], "type": kind, "value": match[2]}


def time_grain(text: str) -> dict[str, Any]:
    """``avg 1m`` as the fields of a metric trigger. Raises Error UsageError."""
    word, _, length = text.strip().partition(" ")
    if word.lower() not in _STATISTICS or not length.strip():
        raise _usage("--timegrain", text, "{avg,min,max,sum} PERIOD", 'such as "avg 1m"')
    return {"statistic": _STATISTICS[word.lower()], "timeGrain": period("--timegrain", length.strip())}


def period(option: str, text: str) -> str:
    """``1h30m`` as ``PT1H30M``. Raises Error UsageError."""
    match = _PERIOD.fullmatch(text)
    if match is None or not any(match.groups()):
        raise _usage(option, text, "##h##m##s", "such as 5m or 1h30m")
    return "PT" + "".join(f"{n}{unit}" for n, unit in zip(match.groups(), "HMS", strict=True) if n)


def _dimension(text: str) -> dict[str, Any]:
    match = _DIMENSION.fullmatch(text)
    if match is None:
        raise _usage("--condition", text, _CONDITION_FORM, 'such as "... where statusCodeClass == 5xx"')
    values = [value.strip().strip("'\"") for value in re.split(r"\s+or\s+", match["values"], flags=re.I)]
    return {"DimensionName": match["name"], "Operator": _OPERATORS[match["operator"]], "Values": values}


def _usage(option: str, text: str, form: str, example: str) -> Error:
    return Error("UsageError", f"{option}: cannot read {text[:120]!r}; {example}", target=option, hint=f"write {form}")
