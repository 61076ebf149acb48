"""What instances use, and the values that rules of autoscale settings get: measured, stored,
combined."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from amphitrite.controlplane.core.autoscale_settings.setting import Dimension, MetricTrigger, Target
from amphitrite.controlplane.core.observed.usage import InstanceUsage
from amphitrite.controlplane.metrics import minute_windows, rule_values
from amphitrite.controlplane.reconciliation.usage_sampler import UsageSampler
from amphitrite.controlplane.runtimes.local import instance_usage
from amphitrite.controlplane.store.reports.metric_minutes import StoredMetrics

from ...stores import new_store

BLUE, PETS = Target("pets", "blue"), Target("pets")
CPU, RATE, LATENCY = "CpuUtilizationPercentage", "RequestsPerMinute", "RequestLatency"
NOW = 600.0 * 60 + 30


def trigger(metric: str, source: Target = PETS, **more: Any) -> MetricTrigger:
    given = {
        "time_grain_s": 60,
        "statistic": "Average",
        "time_window_s": 300,
        "time_aggregation": "Average",
        "operator": "GreaterThan",
        "threshold": 1.0,
        **more,
    }
    return MetricTrigger(metric=metric, source=source, **given)


def used(cpu: float, memory: float, samples: float, instance: str = "blue-0") -> dict[str, float]:
    prefix = f"usage/{instance}/"
    return {prefix + "cpu": cpu, prefix + "memory": memory, prefix + "samples": samples}


#: The last five minutes; the window is 595 to 599.
MINUTES: dict[int, minute_windows.Counters] = {
    594: {"blue": {"requests/200/": 999.0}},
    595: {"blue": {**used(120, 60, 6), **used(480, 240, 6, "blue-1")}},
    597: {
        "blue": {"requests/200/": 30.0, "requests/503/NoHealthyInstance": 6.0, "le/9": 36.0, "microseconds": 36e5},
        "green": {"requests/200/": 24.0, "le/9": 24.0, "microseconds": 48e5},
        "": {"requests/401/AuthenticationFailed": 5.0, "le/0": 5.0, "microseconds": 5.0},
    },
    599: {"blue": used(600, 60, 6)},
    600: {"blue": {"requests/200/": 999.0}},
}


def dimension(name: str, *values: str, equals: bool = True) -> tuple[Dimension, ...]:
    return (Dimension(name, equals, values),)


@pytest.mark.parametrize(
    ("asked", "value"),
    [
        (trigger(RATE), 65 / 5),
        (trigger(RATE, BLUE), 36 / 5),
        (trigger(RATE, time_grain_s=300), 13.0),
        (trigger(RATE, time_grain_s=300, statistic="Max"), 65.0),
        (trigger(RATE, time_grain_s=300, statistic="Min"), 0.0),
        (trigger(RATE, time_grain_s=300, statistic="Sum"), 65.0),
        (trigger(RATE, time_grain_s=300, statistic="Count"), 5.0),
        (trigger(RATE, time_aggregation="Maximum"), 65.0),
        (trigger(RATE, time_aggregation="Minimum"), 0.0),
        (trigger(RATE, time_aggregation="Total"), 65.0),
        (trigger(RATE, time_aggregation="Count"), 5.0),
        (trigger(RATE, time_aggregation="Last"), 0.0),
        (trigger(RATE, dimensions=dimension("statusCodeClass", "5xx")), 6 / 5),
        (trigger(RATE, dimensions=dimension("statusCodeClass", "2xx", "5xx")), 60 / 5),
        (trigger(RATE, dimensions=dimension("statusCode", "200", equals=False)), 11 / 5),
        (trigger(RATE, dimensions=dimension("deployment", "green")), 24 / 5),
        (trigger(LATENCY), 8400 / 60),  # Without those that were refused, and without idle minutes.
        (trigger(LATENCY, BLUE), 100.0),
        (trigger(LATENCY, dimensions=dimension("deployment", "blue", equals=False)), 200.0),
        (trigger(LATENCY, Target("pets", "idle")), 0.0),
        (trigger(CPU, BLUE), ((20 + 80) / 2 + 100) / 2),
        (trigger(CPU, BLUE, statistic="Max"), (80 + 100) / 2),
        (trigger(CPU, BLUE, statistic="Min"), (20 + 100) / 2),
        (trigger(CPU, BLUE, statistic="Sum", time_aggregation="Maximum"), 100.0),
        (trigger(CPU, BLUE, statistic="Count", time_aggregation="Total"), 3.0),
        (trigger(CPU, BLUE, dimensions=dimension("instanceId", "blue-1")), 80.0),
        (trigger("CpuMemoryUtilizationPercentage", BLUE, time_aggregation="Last"), 10.0),
        (trigger(CPU, Target("pets", "green")), None),
    ],
)
def test_the_value_of_a_rule(asked: MetricTrigger, value: float | None) -> None:
    assert rule_values.value(asked, MINUTES, NOW, True) == pytest.approx(value) if value is not None else True
    if value is None:
        assert rule_values.value(asked, MINUTES, NOW, True) is None


def test_where_nobody_counts_there_is_no_data() -> None:
    assert rule_values.value(trigger(RATE), {}, NOW, False) is None
    assert rule_values.value(trigger(LATENCY), {}, NOW, False) is None
    assert rule_values.value(trigger(RATE), MINUTES, NOW, False) == pytest.approx(65 / 3)


def test_samples_become_percentages_of_their_minutes(tmp_path: Path) -> None:
    store = new_store(tmp_path / "store.db")
    metrics, now, cpu = StoredMetrics(store.database), [595 * 60.0], [0.0]

    def measure() -> list[InstanceUsage]:
        return [InstanceUsage("blue-0", "pets", "blue", now[0], cpu[0], 2, 1 << 30, 4 << 30)]

    samplers = [UsageSampler(measure, metrics, lambda: now[0], name) for name in ("usage-1", "usage-2")]
    for minute in range(5):
        sampler = samplers[minute // 4]  # The last minute is another process's.
        for _ in range(6):
            sampler.sample()
            now[0] += 10
            cpu[0] += 10 * 2 * (0.5 if minute < 4 else 0.9)
    history = metrics.history(595, 599)
    minutes = minute_windows.by_minute(history, "Pets", 595, 599)
    assert rule_values.value(trigger(CPU, BLUE, time_aggregation="Minimum"), minutes, NOW, True) == pytest.approx(50)
    assert rule_values.value(trigger(CPU, BLUE, time_aggregation="Last"), minutes, NOW, True) == pytest.approx(90)
    memory = trigger("CpuMemoryUtilizationPercentage", BLUE)
    assert rule_values.value(memory, minutes, NOW, True) == pytest.approx(25)
    store.close()


def test_processor_time_includes_children_that_have_ended() -> None:
    burn = "import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass\n"
    script = (
        f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {burn!r}])\nprint('done', flush=True)\ninput()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == "done\n"
        assert instance_usage.cpu_seconds(process.pid) >= 0.19
        process.stdin.close()
    assert instance_usage.cpu_seconds(process.pid) == 0.0
    assert instance_usage.cpu_seconds(os.getpid()) > 0
