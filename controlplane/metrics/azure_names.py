"""Azure Monitor's metrics of an online endpoint, and how they are calculated.

Decides which metrics are available, with their units, aggregations and dimensions, and why others
are not (Azure's page "Supported metrics for
Microsoft.MachineLearningServices/workspaces/onlineEndpoints"). Must not know queries or answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from amphitrite.controlplane.metrics import usage_counters
from amphitrite.controlplane.metrics.minute_windows import latency_count, percentile

NAMESPACE = "Microsoft.MachineLearningServices/workspaces/onlineEndpoints"
OF_DEPLOYMENTS = f"{NAMESPACE}/deployments"
#: Metrics of instances -> what is counted.
USAGE = {
    "CpuUtilizationPercentage": usage_counters.CPU,
    "CpuMemoryUtilizationPercentage": usage_counters.MEMORY,
}


@dataclass(frozen=True, slots=True)
class Metric:
    """``value``: of the counters of one series in a number of seconds; None if nothing
    was counted."""

    unit: str
    description: str
    aggregations: tuple[str, ...]
    dimensions: tuple[str, ...]
    value: Callable[[Mapping[str, float], float], float | None]


def _latency(share: float) -> Metric:
    def value(fields: Mapping[str, float], seconds: float) -> float | None:
        seconds_at_share = percentile(fields, share)
        return None if seconds_at_share is None else seconds_at_share * 1000

    description = f"Latency that {share:.0%} of the requests to a deployment did not exceed."
    return Metric("MilliSeconds", description, ("Average",), ("deployment",), value)


def _mean(fields: Mapping[str, float], seconds: float) -> float | None:
    count = latency_count(fields)
    return fields.get("microseconds", 0.0) / count / 1000 if count else None


def _usage(name: str, description: str) -> Metric:
    return Metric(
        "Percent",
        description,
        ("Average",),
        ("deployment",),
        lambda fields, seconds: usage_counters.average(fields, USAGE[name]),
    )


METRICS: Mapping[str, Metric] = {
    "RequestsPerMinute": Metric(
        "Count",
        "Requests by status code.",
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
        "Bytes of request and response bodies.",
        ("Average",),
        ("deployment",),
        lambda fields, seconds: (fields.get("received", 0.0) + fields.get("sent", 0.0)) / seconds,
    ),
    "CpuUtilizationPercentage": _usage(
        "CpuUtilizationPercentage", "Processor time of the instances, as a part of their instance type's cores."
    ),
    "CpuMemoryUtilizationPercentage": _usage(
        "CpuMemoryUtilizationPercentage", "Memory of the instances, as a part of their instance type's memory."
    ),
}
_CONNECTIONS = "connections are shared by all endpoints"
_PER_INSTANCE = "use Triton's metrics of each instance (nv_*)"
_NOT_COUNTED = "this server does not count it"
#: Azure's metrics that are not available: the reason.
UNSUPPORTED_METRICS = {
    "ConnectionsActive": _CONNECTIONS,
    "NewConnectionsPerSecond": _CONNECTIONS,
    "DataCollectionEventsPerMinute": "this server does not collect data",
    "DataCollectionErrorsPerMinute": "this server does not collect data",
    "GpuUtilizationPercentage": _PER_INSTANCE,
    "GpuMemoryUtilizationPercentage": _PER_INSTANCE,
    "GpuEnergyJoules": _PER_INSTANCE,
    "DiskUtilization": _NOT_COUNTED,
    "DeploymentCapacity": _NOT_COUNTED,
}
