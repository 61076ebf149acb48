"""What a deployment's owner wants of its number of instances.

Decides the windows and limits of scaling. Must not know samples or instances.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Seconds over which demand is averaged, as Knative's autoscaler does (stable and panic window).
STABLE_WINDOW_S = 60.0
QUICK_WINDOW_S = 6.0
#: Fewer instances are recommended only after this many polling intervals, as Azure ML's Kubernetes
#: endpoints do, and after this many seconds at least: with 60, a burst in each minute makes a
#: deployment grow and shrink in each.
DOWN_INTERVALS = 20
DOWN_WINDOW_S = 75.0


@dataclass(frozen=True, slots=True)
class ScalingPolicy:
    """``scale_settings`` of type ``target_utilization``.

    - ``per_instance``: requests that one instance works on at once
      (``max_concurrent_requests_per_instance``).
    - ``target``: the share of them that is to be in use, above 0 and at most 1.
    - ``polling_interval_s``: seconds between two samples.
    - ``idle_timeout_s``: seconds without a request after which a deployment with ``min_instances``
      0 gets none.
    - ``start_s``: seconds that an instance needs until it is ready, as seen so far; 0 if none has
      been.
    """

    min_instances: int
    max_instances: int
    per_instance: int
    target: float = 0.7
    polling_interval_s: float = 1.0
    idle_timeout_s: float = 300.0
    start_s: float = 0.0

    @property
    def down_window_s(self) -> float:
        return max(DOWN_INTERVALS * self.polling_interval_s, DOWN_WINDOW_S)

    @property
    def stale_s(self) -> float:
        """The age from which the newest sample says nothing about now."""
        return max(3 * self.polling_interval_s, QUICK_WINDOW_S)

    @property
    def kept_s(self) -> float:
        """How far back samples are of use."""
        return max(STABLE_WINDOW_S, self.down_window_s) + self.polling_interval_s
