"""The value of a metric for a rule of an autoscale setting, from counters by minute.

Decides how a rule's statistic, grain, window and dimensions become one number. Pure. Must not know
who counts.

A grain has one value for each instance (usage) or each minute (requests), which ``statistic``
combines; the mean of requests is that of the whole grain. ``timeAggregation`` combines the grains.
Latency without a single request is 0: nothing was slow. A grain without data does not count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from amphitrite.controlplane.core.autoscale_settings.setting import MetricTrigger
from amphitrite.controlplane.metrics import azure_monitor, usage_counters
from amphitrite.controlplane.metrics.azure_names import METRICS, USAGE
from amphitrite.controlplane.metrics.minute_windows import Counters, merge, sum_counters

Fields = dict[str, float]


def minutes_of(trigger: MetricTrigger, now: float) -> range:
    """The minutes since the epoch in the window: the last ones that are complete."""
    end = int(now // 60)
    return range(end - trigger.time_window_s // 60, end)


def value(trigger: MetricTrigger, minutes: Mapping[int, Counters], now: float, counts: bool) -> float | None:
    """``minutes``: the counters of the source's endpoint. ``counts``: a proxy is there that counts
    requests, so that a minute without counters is one without requests."""
    window = minutes_of(trigger, now)
    step = trigger.time_grain_s // 60
    grains = [[minutes.get(m, {}) for m in window[at : at + step]] for at in range(0, len(window), step)]
    of_usage = trigger.metric in USAGE
    found = [
        one
        for grain in grains
        for one in [_usage(trigger, grain) if of_usage else _requests(trigger, grain, counts)]
        if one is not None
    ]
    if not found:
        return 0.0 if counts and not of_usage else None
    return {
        "Average": sum(found) / len(found),
        "Minimum": min(found),
        "Maximum": max(found),
        "Total": sum(found),
        "Count": float(len(found)),
        "Last": found[-1],
    }[trigger.time_aggregation]


def _usage(trigger: MetricTrigger, grain: Sequence[Counters]) -> float | None:
    """Of a deployment: a value for each instance with samples in the grain."""
    fields = merge(f for d, f in sum_counters(grain).items() if d.lower() == trigger.source.deployment)
    found = [
        sums.get(USAGE[trigger.metric], 0.0) / sums[usage_counters.SAMPLES]
        for instance, sums in usage_counters.instances(fields).items()
        if sums.get(usage_counters.SAMPLES) and _fits(trigger, {"instanceId": instance})
    ]
    return _combined(trigger, found)


def _requests(trigger: MetricTrigger, grain: Sequence[Counters], counts: bool) -> float | None:
    metric = METRICS[trigger.metric]
    if trigger.statistic == "Average":
        counted = sum_counters(grain)
        return metric.value(_fields(trigger, counted), 60 * len(grain)) if counted or counts else None
    each = (metric.value(_fields(trigger, minute), 60) for minute in grain if minute or counts)
    return _combined(trigger, [one for one in each if one is not None])


def _combined(trigger: MetricTrigger, found: Sequence[float]) -> float | None:
    if not found:
        return None
    return {
        "Average": sum(found) / len(found),
        "Min": min(found),
        "Max": max(found),
        "Sum": sum(found),
        "Count": float(len(found)),
    }[trigger.statistic]


def _fields(trigger: MetricTrigger, counted: Counters) -> Fields:
    wanted = trigger.source.deployment
    mine = {d: f for d, f in counted.items() if wanted is None or d.lower() == wanted}
    metric = METRICS[trigger.metric]
    if "statusCode" in metric.dimensions:
        return {"requests": sum(n for dimensions, n in azure_monitor.requests(mine) if _fits(trigger, dimensions))}
    # The latency of refused requests says nothing about a model.
    of_models = metric.unit == "MilliSeconds"
    return merge(f for d, f in mine.items() if (d or not of_models) and _fits(trigger, {"deployment": d}))


def _fits(trigger: MetricTrigger, dimensions: Mapping[str, str]) -> bool:
    return all((dimensions[one.name].lower() in one.values) is one.equals for one in trigger.dimensions)
