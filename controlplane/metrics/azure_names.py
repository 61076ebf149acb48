"""Azure Monitor's metrics of an online endpoint, and what each is worked out from.

Decides which are given, with their units, aggregations and dimensions, and why others are not. Must not know queries or
answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from amphitrite.controlplane.metrics.minute_windows import percentile, timed

NAMESPACE = "Microsoft.MachineLearningServices/workspaces/onlineEndpoints"


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
NOT_GIVEN = {
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
