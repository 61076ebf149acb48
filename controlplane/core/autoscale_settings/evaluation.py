"""The number of instances by an autoscale setting, as Azure Monitor evaluates it.

Decides by these rules. The number is always within the profile's limits. It grows if any rule to
scale out fires; the largest number counts. It shrinks only if all rules to scale in fire; the
smallest step counts, and only if the number would not grow again at once. No rule acts before its
cooldown is over, counted from the last change in either direction. Without data of a metric the
number grows to the profile's default and never shrinks. Must not know where values come from.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from amphitrite.controlplane.core.autoscale_settings import profiles
from amphitrite.controlplane.core.autoscale_settings.setting import (
    AutoscaleSetting,
    MetricTrigger,
    Profile,
    Rule,
    ScaleAction,
)

#: Metrics of single instances: what one has less of, the others have more of.
PER_INSTANCE_METRICS = frozenset({"CpuUtilizationPercentage", "CpuMemoryUtilizationPercentage"})

_SIGNS = {
    "Equals": "==",
    "NotEquals": "!=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}

#: The value of each metric before it is divided; None: there is no data.
Values = Mapping[MetricTrigger, float | None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """``count``: the number of instances that is wanted now. ``reason``: why it is that, or why it
    does not change; one line. ``profile``: the one in force."""

    count: int
    reason: str
    profile: str


def triggers(setting: AutoscaleSetting, now: float) -> tuple[MetricTrigger, ...]:
    """What has to be measured for ``evaluate`` at the same time."""
    return tuple(dict.fromkeys(rule.trigger for rule in profiles.in_force(setting, now).rules))


def evaluate(setting: AutoscaleSetting, values: Values, now: float, count: int, changed_at: float) -> Outcome:
    """``count``: of instances that are wanted so far. ``changed_at``: when the setting last changed
    it, 0 if never. Times in seconds since the epoch."""
    profile = profiles.in_force(setting, now)
    name = profiles.shown_name(profile)
    limited = profile.capacity.limited(count)
    if limited != count:
        bound = "minimum" if limited > count else "maximum"
        return Outcome(limited, f"profile {name}: the {bound} is {limited}", name)
    wanted, reason = _by_rules(profile, values, now - changed_at, count)
    return Outcome(wanted, f"profile {name}: {reason}", name)


def _by_rules(profile: Profile, values: Values, since_change_s: float, count: int) -> tuple[int, str]:
    capacity = profile.capacity
    if not profile.rules:
        return count, "it has no rules"
    measured = {rule.trigger: _divided(rule.trigger, values.get(rule.trigger), count) for rule in profile.rules}
    fired = [rule for rule in profile.rules if holds(rule.trigger, measured[rule.trigger])]
    out = [(capacity.limited(target), rule) for rule in fired if (target := _target(rule.action, count)) > count]
    if out:
        target, rule = max(out, key=lambda one: one[0])
        return _after_cooldown(count, target, [rule], measured, since_change_s)
    missing = [rule.trigger.metric for rule in profile.rules if measured[rule.trigger] is None]
    if missing:
        without = f"{', '.join(dict.fromkeys(missing))}: no data"
        if count < capacity.default:
            return capacity.limited(capacity.default), f"{without}, so the default of {capacity.default} counts"
        return count, f"{without}, so nothing is taken away"
    shrinking = [(rule, _target(rule.action, count)) for rule in profile.rules if _target(rule.action, count) < count]
    if not shrinking or any(rule not in fired for rule, _ in shrinking):
        return count, "no rule fires" if not fired else "not all rules to scale in fire"
    target = max(capacity.limited(target) for _, target in shrinking)
    again = _grows_again(profile.rules, values, count, target)
    if target == count or again is not None:
        return count, f"at {target}, {again}" if again is not None else f"the minimum is {capacity.minimum}"
    return _after_cooldown(count, target, [rule for rule, _ in shrinking], measured, since_change_s)


def _after_cooldown(
    count: int,
    target: int,
    rules: Sequence[Rule],
    measured: Mapping[MetricTrigger, float | None],
    since_change_s: float,
) -> tuple[int, str]:
    said = " and ".join(_said(rule.trigger, measured[rule.trigger]) for rule in rules)
    if target == count:
        return count, f"{said}, but {count} is the maximum"
    left = max(rule.action.cooldown_s for rule in rules) - since_change_s
    if left > 0:
        return count, f"{said}; cooling down for {math.ceil(left)} s more"
    return target, said


def holds(trigger: MetricTrigger, value: float | None) -> bool:
    """Whether the condition is true. It is not without data."""
    if value is None:
        return False
    return {
        "Equals": value == trigger.threshold,
        "NotEquals": value != trigger.threshold,
        "GreaterThan": value > trigger.threshold,
        "GreaterThanOrEqual": value >= trigger.threshold,
        "LessThan": value < trigger.threshold,
        "LessThanOrEqual": value <= trigger.threshold,
    }[trigger.operator]


def _target(action: ScaleAction, count: int) -> int:
    """The number that ``action`` asks for. A percentage is at least one instance."""
    if action.type == "ExactCount":
        steps = {"Increase": max(action.value, count), "Decrease": min(action.value, count)}
        return steps.get(action.direction, action.value)
    step = action.value
    if action.type == "PercentChangeCount":
        exact = count * action.value / 100
        step = max(math.ceil(exact) if action.direction == "Increase" else math.floor(exact), 1)
    return count + step if action.direction == "Increase" else max(count - step, 0)


def _divided(trigger: MetricTrigger, value: float | None, count: int) -> float | None:
    return value / max(count, 1) if value is not None and trigger.divide_per_instance else value


def _grows_again(rules: Sequence[Rule], values: Values, count: int, fewer: int) -> str | None:
    """Why ``fewer`` instances would be more again at once; None if they would not."""
    for rule in rules:
        if _target(rule.action, fewer) <= fewer:
            continue
        then = _projected(rule.trigger, values.get(rule.trigger), count, fewer)
        if holds(rule.trigger, then):
            return f"{_said(rule.trigger, then)} would scale out again"
    return None


def _projected(trigger: MetricTrigger, value: float | None, count: int, fewer: int) -> float | None:
    """What the metric would be with ``fewer`` instances that do the same work."""
    if value is None or trigger.divide_per_instance:
        return _divided(trigger, value, fewer)
    shared = trigger.metric in PER_INSTANCE_METRICS and trigger.statistic not in ("Sum", "Count")
    return value * count / max(fewer, 1) if shared and trigger.time_aggregation != "Count" else value


def _said(trigger: MetricTrigger, value: float | None) -> str:
    shown = "no data" if value is None else f"{value:.4g}"
    of = trigger.source.endpoint if trigger.source.deployment is None else ""
    where = f" of endpoint {of}" if of else ""
    return f"{trigger.metric}{where} is {shown} ({_SIGNS[trigger.operator]} {trigger.threshold:g})"
