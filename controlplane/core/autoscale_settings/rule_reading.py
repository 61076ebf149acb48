"""The rules of a profile, from their wire form.

Decides which metrics a rule may use and what is refused, with the reason. Must not know profiles.
"""

from __future__ import annotations

import re
from typing import Any, cast, get_args

from amphitrite.controlplane.core.autoscale_settings.field_reader import FieldReader, Path
from amphitrite.controlplane.core.autoscale_settings.setting import (
    Dimension,
    Direction,
    MetricTrigger,
    Operator,
    Rule,
    ScaleAction,
    ScaleType,
    Statistic,
    Target,
    TimeAggregation,
)
from amphitrite.schemas.errors import Violation
from amphitrite.schemas.names import PROVIDER, key

#: Azure's limits, in seconds; but the counters are kept for six hours, where Azure allows twelve.
TIME_GRAIN_S = (60, 6 * 3600)
TIME_WINDOW_S = (5 * 60, 6 * 3600)
COOLDOWN_S = (60, 7 * 86_400)
#: More instances than any deployment may have.
INSTANCES_MAX = 1000

_REQUESTS = ("deployment", "statusCode", "statusCodeClass", "modelStatusCode")
#: Metric -> its dimensions.
METRICS = {
    "CpuUtilizationPercentage": ("instanceId",),
    "CpuMemoryUtilizationPercentage": ("instanceId",),
    "RequestsPerMinute": _REQUESTS,
    "RequestLatency": ("deployment",),
    "RequestLatency_P50": ("deployment",),
    "RequestLatency_P90": ("deployment",),
    "RequestLatency_P95": ("deployment",),
    "RequestLatency_P99": ("deployment",),
    "NetworkBytes": ("deployment",),
}
_OF_INSTANCES = ("CpuUtilizationPercentage", "CpuMemoryUtilizationPercentage")
_NO_GPU = "this server does not measure GPUs; Triton's own metrics (nv_gpu_*) do"
_NOT_COUNTED = "this server does not count it"
#: Azure's metrics that no rule can use: the reason.
UNSUPPORTED = {
    "GpuUtilizationPercentage": _NO_GPU,
    "GpuMemoryUtilizationPercentage": _NO_GPU,
    "GpuEnergyJoules": _NO_GPU,
    "DiskUtilization": _NOT_COUNTED,
    "DeploymentCapacity": _NOT_COUNTED,
    "ConnectionsActive": "connections are shared by all endpoints",
    "NewConnectionsPerSecond": "connections are shared by all endpoints",
    "DataCollectionEventsPerMinute": "this server does not collect data",
    "DataCollectionErrorsPerMinute": "this server does not collect data",
}

_RESOURCE = re.compile(r"(?P<workspace>.+)/onlineEndpoints/(?P<endpoint>[^/]+)(/deployments/(?P<name>[^/]+))?", re.I)
_TRIGGER = (
    *("metricName", "metricNamespace", "metricResourceUri", "metricResourceLocation", "timeGrain", "statistic"),
    *("timeWindow", "timeAggregation", "operator", "threshold", "dimensions", "dividePerInstance"),
)


def target_of(uri: str, workspace: str) -> Target | None:
    """The endpoint or deployment of an ARM id; None for any other text. ``workspace``: the ARM id
    of this server's."""
    match = _RESOURCE.fullmatch(uri.rstrip("/"))
    if match is None or key(match["workspace"]) != key(workspace):
        return None
    return Target(key(match["endpoint"]), key(match["name"]) if match["name"] else None)


def read_rule(value: Any, path: Path, violations: list[Violation], workspace: str) -> Rule:
    rule = FieldReader(value, path, violations, ("metricTrigger", "scaleAction"))
    for name in ("metricTrigger", "scaleAction"):
        rule.required(name)
    trigger = rule.within("metricTrigger", _TRIGGER) or FieldReader({}, path, [], ())
    action = rule.within("scaleAction", ("direction", "type", "value", "cooldown")) or FieldReader({}, path, [], ())
    return Rule(_trigger(trigger, workspace), _action(action))


def _trigger(fields: FieldReader, workspace: str) -> MetricTrigger:
    metric = _metric(fields)
    source = _source(fields, workspace)
    if metric in _OF_INSTANCES and source.endpoint and source.deployment is None:
        fields.refuse(("metricResourceUri",), f"{metric} is a metric of deployments; name the deployment's id")
    namespace = f"{PROVIDER}/workspaces/onlineEndpoints" + ("/deployments" if source.deployment else "")
    given = fields.text("metricNamespace", needed=False)
    if given and key(given) != key(namespace):
        fields.refuse(("metricNamespace",), f"is {given[:80]!r}; allowed: {namespace}")
    fields.text("metricResourceLocation", needed=False)
    grain = fields.duration("timeGrain", *TIME_GRAIN_S, whole_minutes=True)
    window = fields.duration("timeWindow", *TIME_WINDOW_S, whole_minutes=True)
    if grain > window:
        fields.refuse(("timeGrain",), "must not be longer than timeWindow")
    elif window % grain:
        fields.refuse(("timeWindow",), "must be a multiple of timeGrain")
    return MetricTrigger(
        metric=metric,
        source=source,
        time_grain_s=grain,
        statistic=cast(Statistic, fields.one_of("statistic", get_args(Statistic))),
        time_window_s=window,
        time_aggregation=cast(TimeAggregation, fields.one_of("timeAggregation", get_args(TimeAggregation))),
        operator=cast(Operator, fields.one_of("operator", get_args(Operator))),
        threshold=fields.number("threshold"),
        dimensions=_dimensions(fields, metric, source),
        divide_per_instance=fields.flag("dividePerInstance", False),
    )


def _metric(fields: FieldReader) -> str:
    given = fields.text("metricName")
    known = {name.lower(): name for name in METRICS}
    metric = known.get(given.lower())
    if metric is not None or not given:
        return metric or "RequestsPerMinute"
    reason = {name.lower(): why for name, why in UNSUPPORTED.items()}.get(given.lower())
    what = f"{given} is not available: {reason}" if reason else f"there is no metric {given[:80]!r}"
    fields.refuse(("metricName",), f"{what}; available: {', '.join(METRICS)}")
    return "RequestsPerMinute"


def _source(fields: FieldReader, workspace: str) -> Target:
    uri = fields.text("metricResourceUri")
    source = target_of(uri, workspace)
    if uri and source is None:
        fields.refuse(("metricResourceUri",), f"is {uri[:200]!r}; allowed: the id of an endpoint or a deployment here")
    return source or Target("")


def _dimensions(fields: FieldReader, metric: str, source: Target) -> tuple[Dimension, ...]:
    dimensions = []
    allowed = [name for name in METRICS[metric] if source.deployment is None or name != "deployment"]
    for path, value in fields.items("dimensions", most=10):
        one = FieldReader(value, path, fields.violations, ("DimensionName", "Operator", "Values"))
        name = one.text("DimensionName")
        found = {word.lower(): word for word in allowed}.get(name.lower())
        if name and found is None:
            has = f"has {', '.join(allowed)}" if allowed else "of a deployment has none"
            one.refuse(("DimensionName",), f"is {name[:80]!r}; {metric} {has}")
        equals = one.one_of("Operator", ("Equals", "NotEquals")) == "Equals"
        one.required("Values")
        values = [value for _, value in one.items("Values", most=100)]
        if not all(isinstance(value, str) and "\0" not in value for value in values) or (one.get("Values") == []):
            one.refuse(("Values",), "must be a list of texts, at least one")
        dimensions.append(Dimension(found or "", equals, tuple(str(value).lower() for value in values)))
    return tuple(dimensions)


def _action(fields: FieldReader) -> ScaleAction:
    direction = cast(Direction, fields.one_of("direction", get_args(Direction)))
    given = fields.one_of("type", (*get_args(ScaleType), "ServiceAllowedNextValue"))
    kind = cast(ScaleType, given)
    if given == "ServiceAllowedNextValue":
        fields.refuse(("type",), f"is {given}; a deployment may have any number: use ChangeCount")
    elif direction == "None" and kind != "ExactCount":
        fields.refuse(("direction",), f"is None; {kind} needs Increase or Decrease")
    value = fields.count("value", 1, INSTANCES_MAX, default="1")
    if kind == "ExactCount" and fields.get("value") is None:
        fields.refuse(("value",), "ExactCount needs a value")
    return ScaleAction(direction, kind, value, fields.duration("cooldown", *COOLDOWN_S))
