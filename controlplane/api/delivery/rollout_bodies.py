"""Replies about rollouts.

Decides what is shown of the evidence. Must not know routes.
"""

from __future__ import annotations

import math
from typing import Any

from amphitrite.controlplane.api.azure.resource_bodies import USER, timestamp
from amphitrite.controlplane.core.rollouts import evidence as evidences
from amphitrite.controlplane.core.rollouts import judgement as judgements
from amphitrite.controlplane.core.rollouts import rollout_plan, traffic_rollout
from amphitrite.controlplane.core.rollouts.evidence import Count, Evidence, Watch
from amphitrite.controlplane.core.rollouts.judgement import Judgement, Objective, Trial
from amphitrite.controlplane.core.rollouts.quantities import share_text
from amphitrite.controlplane.core.rollouts.traffic_rollout import Rollout
from amphitrite.schemas.casing import camel


def rollout(of: Rollout) -> dict[str, Any]:
    """``percent``: the share of the live traffic now, or at the end. ``step``: from 1; 0 before the
    first one."""
    plan, shown = of.plan, traffic_rollout.current(of)
    traffic = traffic_rollout.traffic(of).live
    if of.state in ("RolledBack", "Aborted"):
        traffic = plan.base
    return {
        "number": of.number,
        "endpoint": of.endpoint,
        "to": plan.to,
        "state": of.state,
        "reason": of.reason,
        "phase": traffic_rollout.phase_text(of),
        "step": max(of.phase + 1, 0),
        "percent": int(traffic.get(plan.to, 0)),
        "from": dict(plan.base),
        "target": dict(plan.target),
        "author": of.by or USER,
        "startReason": of.why or None,
        "startTime": timestamp(of.started_at),
        "stepTime": None if of.began_at is None else timestamp(of.began_at),
        "endTime": None if of.ended_at is None else timestamp(of.ended_at),
        "settings": _settings(of),
        "objectives": [_objective(shown, one) for one in shown.objectives],
        "largestDifferences": dict(of.differences),
    }


def _settings(of: Rollout) -> dict[str, Any]:
    written = rollout_plan.written(of.plan)
    return {camel(name): value for name, value in written.items()}


def _objective(of: Judgement, objective: Objective) -> dict[str, Any]:
    """``bad`` of ``total`` requests since the step began. ``against`` and ``kept``: how much of the
    evidence that is needed there is, in percent. ``needed``: about how many more requests."""
    trial = of.trials.get(objective.name, Trial())
    alpha = of.alpha / max(judgements.tests(of.objectives), 1)
    watched = [trial.above, *([trial.worse] if objective.margin is not None else [])]
    limit = objective.limit or 0.0
    return {
        "name": objective.name,
        "limit": share_text(limit),
        **_counts("total", "bad", trial.new),
        **(_counts("otherTotal", "otherBad", trial.other) if objective.margin is not None else {}),
        "against": max(_percent(one, alpha) for one in watched),
        "kept": _percent(trial.below, alpha),
        "needed": evidences.requests_needed(trial.below, trial.new, limit, alpha),
    }


def _counts(total: str, bad: str, of: Count) -> dict[str, int]:
    return {total: of.total, bad: of.bad}


def _percent(of: Evidence | Watch, alpha: float) -> int:
    return int(max(0.0, min(100 * of.log / -math.log(alpha), 100.0)))
