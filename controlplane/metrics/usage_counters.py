"""Counters of what instances use, in the form of a proxy's counters, so that they are stored and
summed up by minutes like those.

Decides the fields ``usage/INSTANCE/cpu`` and ``usage/INSTANCE/memory``, sums of percentages, and
``usage/INSTANCE/samples``, how many they sum up. Pure. Must not know who measures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from amphitrite.controlplane.core.observed.usage import InstanceUsage
from amphitrite.dataplane.metrics.counters import Series, Totals

CPU, MEMORY, SAMPLES = "cpu", "memory", "samples"
_PREFIX = "usage/"


def added(totals: Totals, before: Mapping[str, InstanceUsage], now: Sequence[InstanceUsage]) -> Totals:
    """``totals`` and what each instance has used since ``before``. Instances that are gone leave
    the totals: what they used is in the minutes before."""
    counters: dict[Series, dict[str, float]] = {}
    for usage in now:
        series, prefix = (usage.endpoint, usage.deployment), f"{_PREFIX}{usage.id}/"
        fields = counters.setdefault(series, {})
        former = totals.counters.get(series, {})
        fields |= {name: n for name, n in former.items() if name.startswith(prefix)}
        earlier = before.get(usage.id)
        if earlier is None or usage.at <= earlier.at:
            continue
        used = max(usage.cpu_s - earlier.cpu_s, 0.0) / (usage.at - earlier.at) / usage.cores
        sample = {CPU: used * 100, MEMORY: usage.memory / usage.memory_total * 100, SAMPLES: 1.0}
        for name, value in sample.items():
            fields[prefix + name] = fields.get(prefix + name, 0.0) + round(value, 3)
    return Totals(totals.began, counters)


def instances(fields: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """The sums by instance."""
    found: dict[str, dict[str, float]] = {}
    for name, value in fields.items():
        if name.startswith(_PREFIX):
            instance, _, what = name.removeprefix(_PREFIX).rpartition("/")
            found.setdefault(instance, {})[what] = value
    return found


def average(fields: Mapping[str, float], what: str) -> float | None:
    """The mean percentage of all instances in the fields; None without a sample."""
    sums = instances(fields).values()
    samples = sum(one.get(SAMPLES, 0.0) for one in sums)
    return sum(one.get(what, 0.0) for one in sums) / samples if samples else None
