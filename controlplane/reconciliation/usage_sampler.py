"""The leader's task that measures what instances use and stores it with the proxies' counters.

Decides how often. Must not know how a runtime measures, or what a rule makes of it. Each process
counts under a name of its own, so what the leader before it counted stays as it is.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from amphitrite.controlplane.core.observed.usage import InstanceUsage
from amphitrite.controlplane.metrics import usage_counters
from amphitrite.controlplane.store.reports.metric_minutes import StoredMetrics
from amphitrite.dataplane.metrics.counters import Totals
from amphitrite.schemas.errors import Error

log = logging.getLogger(__name__)

PERIOD_S = 10.0


class UsageSampler:
    """``measure``: the usage of all instances that are ready. ``name``: of this process among those
    that count. Used from one thread."""

    def __init__(
        self,
        measure: Callable[[], Sequence[InstanceUsage]],
        metrics: StoredMetrics,
        clock: Callable[[], float],
        name: str,
    ) -> None:
        self._measure, self._metrics, self._clock, self._name = measure, metrics, clock, name
        self._before: dict[str, InstanceUsage] = {}
        self._totals: Totals | None = None

    def run(self, stop: threading.Event) -> None:
        """Samples until ``stop``."""
        self._before = {}  # What was used between two terms belongs to no minute of this one.
        while not stop.is_set():
            try:
                self.sample()
            except Error as error:
                log.warning("cannot store what instances use: %s", error.message)
            stop.wait(PERIOD_S)

    def sample(self) -> None:
        """Raises Error RuntimeUnavailable if the database does not answer."""
        now, measured = self._clock(), self._measure()
        before, self._before = self._before, {usage.id: usage for usage in measured}
        totals = usage_counters.added(self._totals or Totals(now), before, measured)
        self._totals = totals
        if totals.counters:
            self._metrics.put(self._name, totals, now)
