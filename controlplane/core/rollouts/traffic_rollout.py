"""A rollout as a value: what was asked for, how far it is, and what was counted.

Decides its states, its phases and the traffic of each. Must not know how it goes on
(``progress``), nor where it is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from amphitrite.controlplane.core.history.traffic_history import Traffic
from amphitrite.controlplane.core.rollouts import judgement as judgements
from amphitrite.controlplane.core.rollouts.judgement import Judgement
from amphitrite.controlplane.core.rollouts.request_counts import Reading
from amphitrite.controlplane.core.rollouts.rollout_plan import SHADOW_PERCENT, RolloutPlan, shares_at
from amphitrite.dataplane.table.routing_table import Comparison

#: - Running: a step's time is not over. Inconclusive, NoData: it is, and requests are missing to
#:   say that the objectives are kept. Paused: by a person. Promoting: the last step.
#: - The rest are ends: all traffic moved; moved back by the judgement; ended by a person or because
#:   a resource is gone.
State = Literal["Running", "Paused", "Inconclusive", "NoData", "Promoting", "Succeeded", "RolledBack", "Aborted"]
ENDS: tuple[State, ...] = ("Succeeded", "RolledBack", "Aborted")

#: Phases before the first step.
WAITING, SHADOW = -2, -1


@dataclass(frozen=True, slots=True)
class Rollout:
    """- ``number``: counts the rollouts of an endpoint. ``by``, ``why``: as whoever started it
      says.
    - ``phase``: an index of the plan's steps, ``SHADOW`` or ``WAITING``.
    - ``entered_at``: when the phase's traffic was stored; ``began_at``: when all proxies had it,
      None if they have not yet. Seconds since the epoch, as all times.
    - ``judgement``: of live requests; ``shadow``: of mirrored ones. ``last``: by agent.
    - ``differences``: the largest ones of answers that were compared, by tensor.
    - ``version``: of the deployment that is judged; empty before the first look.
    - ``reason``: one line for people, about the state.
    """

    endpoint: str
    number: int
    plan: RolloutPlan
    started_at: float
    by: str = ""
    why: str = ""
    state: State = "Running"
    phase: int = WAITING
    entered_at: float = 0.0
    began_at: float | None = None
    judgement: Judgement = field(default_factory=lambda: Judgement(()))
    shadow: Judgement = field(default_factory=lambda: Judgement(()))
    last: Mapping[str, Reading] = field(default_factory=dict)
    differences: Mapping[str, float] = field(default_factory=dict)
    version: str = ""
    reason: str = ""
    ended_at: float | None = None

    @property
    def is_active(self) -> bool:
        return self.state not in ENDS

    @property
    def percent(self) -> int:
        """The share of the live traffic that its phase gives to the deployment."""
        return self.plan.steps[self.phase] if self.phase >= 0 else int(self.plan.base.get(self.plan.to, 0))

    @property
    def is_last_step(self) -> bool:
        return self.phase == len(self.plan.steps) - 1


def begin(endpoint: str, plan: RolloutPlan, now: float, by: str = "", why: str = "") -> Rollout:
    """A rollout that has not moved anything yet. The store gives it its number."""
    return with_fresh_judgements(Rollout(endpoint, 0, plan, now, by, why, reason="it begins", entered_at=now))


def with_fresh_judgements(rollout: Rollout) -> Rollout:
    """Nothing is known of the deployment. Live and mirrored requests share ``alpha``, in proportion
    to their tests."""
    plan = rollout.plan
    live, mirrored = judgements.tests(plan.objectives), judgements.tests(plan.shadow_objectives)
    return replace(
        rollout,
        differences={},
        judgement=Judgement(plan.objectives, plan.alpha * live / (live + mirrored)),
        shadow=Judgement(plan.shadow_objectives, plan.alpha * mirrored / (live + mirrored)),
    )


def traffic(rollout: Rollout) -> Traffic:
    """What the phase gives to each deployment."""
    plan = rollout.plan
    if rollout.phase < 0:
        mirrored = {plan.to: SHADOW_PERCENT} if rollout.phase == SHADOW else dict(plan.mirrored)
        return Traffic(dict(plan.base), mirrored)
    if rollout.is_last_step:
        return Traffic(dict(plan.target), {})
    return Traffic(shares_at(plan.to, plan.base, plan.steps[rollout.phase]), {})


def comparison(rollout: Rollout) -> Comparison | None:
    """Whose answers are compared in this phase."""
    return rollout.plan.answers if rollout.phase == SHADOW and rollout.is_active else None


def phase_text(rollout: Rollout) -> str:
    """``step 2 of 4, 10 %``."""
    if rollout.phase == WAITING:
        return "before the first step"
    if rollout.phase == SHADOW:
        return f"{SHADOW_PERCENT} % mirrored"
    return f"step {rollout.phase + 1} of {len(rollout.plan.steps)}, {rollout.percent} %"


def current(rollout: Rollout) -> Judgement:
    """The judgement of the phase."""
    return rollout.shadow if rollout.phase == SHADOW else rollout.judgement


def ended(rollout: Rollout, state: State, reason: str, now: float) -> Rollout:
    """Nobody counts any more. What the judgement was is kept."""
    return replace(rollout, state=state, reason=reason, ended_at=now, last={})
