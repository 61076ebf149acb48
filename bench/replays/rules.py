"""Rules for the number of instances: ours, Knative's and Kubernetes'.

Decides a count from the same numbers for all of them. The peers' rules are written after their
documents and sources: Knative Serving's ``pkg/autoscaler/scaling/autoscaler.go`` with the defaults
of ``config-autoscaler``; Kubernetes' HorizontalPodAutoscaler v2 with its defaults. Must not know
traces.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

from amphitrite.controlplane.core.scaling import demand
from amphitrite.controlplane.core.scaling.demand import DemandSample
from amphitrite.controlplane.core.scaling.recommendation import ScalingHistory, Supply, recommend
from amphitrite.controlplane.core.scaling.scaling_policy import ScalingPolicy


class Rule(Protocol):
    name: str

    def decide(self, samples: list[DemandSample], now: float, supply: Supply) -> int:
        """The number of instances that there should be."""
        ...


@dataclass
class Ours:
    policy: ScalingPolicy
    name: str = "Amphitrite"
    history: ScalingHistory = field(default_factory=ScalingHistory)

    def decide(self, samples: list[DemandSample], now: float, supply: Supply) -> int:
        found = recommend(samples, now, self.policy, supply, self.history)
        self.history = found.history
        return found.count


def _average(samples: list[DemandSample], now: float, seconds: float) -> float:
    recent = demand.within(samples, now, seconds)
    return demand.mean_demand(recent, demand.mean_duration_s(recent))


@dataclass
class Knative:
    """Looks every 2 s. Stable window 60 s, panic window 6 s from twice what is ready, never down in
    a panic, at most half away."""

    policy: ScalingPolicy
    name: str = "Knative (KPA)"
    panic_since: float | None = None
    most: int = 0

    def decide(self, samples: list[DemandSample], now: float, supply: Supply) -> int:
        if int(now) % 2:
            return supply.count
        target = self.policy.per_instance * self.policy.target
        ready = max(1, supply.ready)
        lowest = math.floor(ready / 2)
        stable = max(math.ceil(_average(samples, now, 60.0) / target), lowest)
        panic = max(math.ceil(_average(samples, now, 6.0) / target), lowest)
        is_over = panic / ready >= 2
        if is_over:
            if self.panic_since is None:
                self.most = 0
            self.panic_since = now
        elif self.panic_since is not None and now - self.panic_since > 60.0:
            self.panic_since = None
        wanted = stable
        if self.panic_since is not None:
            self.most = max(self.most, panic, supply.ready)
            wanted = self.most
        return min(max(wanted, self.policy.min_instances), self.policy.max_instances)


@dataclass
class HorizontalPodAutoscaler:
    """Looks every 15 s at the average of the last 15 s. Tolerance 10 %; at most twice as many or 4
    more in 15 s; down to the highest of 5 minutes. An instance that is not ready counts as idle."""

    policy: ScalingPolicy
    name: str = "Kubernetes (HPA)"
    wanted: list[tuple[float, int]] = field(default_factory=list)

    def decide(self, samples: list[DemandSample], now: float, supply: Supply) -> int:
        if int(now) % 15:
            return supply.count
        target = self.policy.per_instance * self.policy.target
        load = _average(samples, now, 15.0)
        ratio = load / max(supply.ready, 1) / target
        if ratio > 1 and supply.starting:
            ratio = max(1.0, load / (supply.ready + supply.starting) / target)
            wanted = supply.count if ratio <= 1.1 else math.ceil((supply.ready + supply.starting) * ratio)
        else:
            wanted = supply.count if abs(ratio - 1) <= 0.1 else math.ceil(max(supply.ready, 1) * ratio)
        self.wanted = [(at, count) for at, count in self.wanted if at > now - 300] + [(now, wanted)]
        wanted = max(wanted, min(supply.count, max(count for _, count in self.wanted)))
        wanted = min(wanted, max(2 * supply.count, supply.count + 4))
        return min(max(wanted, self.policy.min_instances), self.policy.max_instances)


@dataclass
class Fixed:
    count: int
    name: str = "fixed"

    def decide(self, samples: list[DemandSample], now: float, supply: Supply) -> int:
        return self.count
