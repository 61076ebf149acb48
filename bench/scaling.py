"""Number of instances under six loads: our rule, Knative's and Kubernetes', simulated.

Decides the table. Must not know the rules.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from amphitrite.controlplane.core.scaling.scaling_policy import ScalingPolicy
from bench.replays import replay, traces
from bench.replays.rules import HorizontalPodAutoscaler, Knative, Ours, Rule

PER_INSTANCE, TARGET, MOST = 4, 0.7, 100


def run(work: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for make in traces.ALL:
        trace = make()
        policy = ScalingPolicy(1, MOST, PER_INSTANCE, TARGET, start_s=trace.start_s)
        rules: tuple[Rule, ...] = (Ours(policy), Knative(policy), HorizontalPodAutoscaler(policy))
        for rule in rules:
            found = replay.replay(trace, rule, PER_INSTANCE, TARGET)
            fixed = replay.best_fixed(trace, PER_INSTANCE, TARGET, found.over_share)
            rows.append(
                {
                    "load": trace.name,
                    "rule": rule.name,
                    "over target, % of time": round(100 * found.over_share, 2),
                    "refused, %": round(100 * found.refused_share, 3),
                    "instance-hours": round(found.instance_hours, 1),
                    "of the best fixed size": round(found.instance_hours / fixed, 2),
                    "changes": found.changes,
                }
            )
    return rows
