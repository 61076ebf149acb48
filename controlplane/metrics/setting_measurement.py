"""The values of all metrics that an autoscale setting needs at a time.

Decides which counters are read for them. Must not know what the rules come to.
"""

from __future__ import annotations

from amphitrite.controlplane.core.autoscale_settings import evaluation
from amphitrite.controlplane.core.autoscale_settings.setting import AutoscaleSetting
from amphitrite.controlplane.metrics import minute_windows, rule_values
from amphitrite.controlplane.store.reports.metric_minutes import StoredMetrics


def measure(setting: AutoscaleSetting, metrics: StoredMetrics, now: float, counts: bool) -> evaluation.Values:
    """``counts``: whether a proxy is there that counts. Raises Error RuntimeUnavailable."""
    triggers = evaluation.triggers(setting, now)
    if not triggers:
        return {}
    windows = [rule_values.minutes_of(trigger, now) for trigger in triggers]
    first, last = min(window[0] for window in windows), max(window[-1] for window in windows)
    history = metrics.history(first, last)
    minutes = {
        endpoint: minute_windows.by_minute(history, endpoint, first, last)
        for endpoint in {trigger.source.endpoint for trigger in triggers}
    }
    return {trigger: rule_values.value(trigger, minutes[trigger.source.endpoint], now, counts) for trigger in triggers}
