"""An autoscale setting as a value.

Decides its shape, with Azure Monitor's terms. Must not know its wire form. Outside contract:
``Microsoft.Insights/autoscalesettings``, api-version 2022-10-01.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Statistic = Literal["Average", "Min", "Max", "Sum", "Count"]
TimeAggregation = Literal["Average", "Minimum", "Maximum", "Total", "Count", "Last"]
Operator = Literal["Equals", "NotEquals", "GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual"]
Direction = Literal["None", "Increase", "Decrease"]
#: Azure's ``ServiceAllowedNextValue`` is for services that have only certain sizes.
ScaleType = Literal["ChangeCount", "PercentChangeCount", "ExactCount"]


@dataclass(frozen=True, slots=True)
class Target:
    """An endpoint, or one of its deployments; names in lower case."""

    endpoint: str
    deployment: str | None = None


@dataclass(frozen=True, slots=True)
class Dimension:
    """``equals``: the value of the dimension is one of ``values``; else none of them."""

    name: str
    equals: bool
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MetricTrigger:
    """A condition on a metric.

    ``statistic``: combines the values of one time grain, of instances or minutes.
    ``time_aggregation``: combines the grains of the window. ``source``: whose metric it is.
    ``divide_per_instance``: the result is divided by the number of instances. Times in seconds.
    """

    metric: str
    source: Target
    time_grain_s: int
    statistic: Statistic
    time_window_s: int
    time_aggregation: TimeAggregation
    operator: Operator
    threshold: float
    dimensions: tuple[Dimension, ...] = ()
    divide_per_instance: bool = False


@dataclass(frozen=True, slots=True)
class ScaleAction:
    """``value``: instances, or percent of those that there are. ``cooldown_s``: seconds since the
    last change of the number."""

    direction: Direction
    type: ScaleType
    value: int
    cooldown_s: int


@dataclass(frozen=True, slots=True)
class Rule:
    trigger: MetricTrigger
    action: ScaleAction


@dataclass(frozen=True, slots=True)
class Capacity:
    """``default``: the number of instances where a metric has no data, unless there are more."""

    minimum: int
    maximum: int
    default: int

    def limited(self, count: int) -> int:
        """``count`` within the limits."""
        return min(max(count, self.minimum), self.maximum)


@dataclass(frozen=True, slots=True)
class FixedDate:
    """From ``start`` to before ``end``; both have a time zone."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Recurrence:
    """The times of each week at which a profile begins.

    ``zone``: IANA's name. ``days``: 0 is Monday. Begins on each day at each combination of hour and
    minute.
    """

    zone: str
    days: tuple[int, ...]
    hours: tuple[int, ...]
    minutes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """A default profile has neither ``fixed_date`` nor ``recurrence``."""

    name: str
    capacity: Capacity
    rules: tuple[Rule, ...] = ()
    fixed_date: FixedDate | None = None
    recurrence: Recurrence | None = None


@dataclass(frozen=True, slots=True)
class AutoscaleSetting:
    """``target``: the deployment that is scaled."""

    name: str
    target: Target
    profiles: tuple[Profile, ...]
    enabled: bool = True
