"""What people ask of a rollout that goes on: pause, resume, promote, abort.

Decides what each means in each state. Pure. Must not know who may ask.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Literal

from amphitrite.controlplane.core.rollouts import progress
from amphitrite.controlplane.core.rollouts import traffic_rollout as rollouts
from amphitrite.controlplane.core.rollouts.progress import Advance
from amphitrite.controlplane.core.rollouts.traffic_rollout import Rollout
from amphitrite.schemas.errors import Error

Request = Literal["pause", "resume", "promote", "abort"]


def ask(
    rollout: Rollout, request: Request, *, full: bool, reason: str, deployments: Collection[str], now: float
) -> Advance:
    """The rollout after ``request``. ``full``: promote to the end at once. ``reason``: as the
    person wrote it. ``deployments``: those that are not being deleted.

    Raises Error Conflict: the rollout has ended, or is paused already, or is not paused.
    """
    if not rollout.is_active:
        raise Error("Conflict", f"the rollout has ended: {rollout.state}", target=rollout.endpoint)
    why = f": {reason}" if reason else ""
    if request == "pause":
        if rollout.state == "Paused":
            raise Error("Conflict", "the rollout is paused already", target=rollout.endpoint)
        said = f"paused at {rollouts.phase_text(rollout)}{why}"
        return Advance(replace(rollout, state="Paused", reason=said))
    if request == "resume":
        if rollout.state != "Paused":
            raise Error("Conflict", f"the rollout is not paused: {rollout.state}", target=rollout.endpoint)
        said = f"resumed at {rollouts.phase_text(rollout)}{why}"
        return Advance(replace(rollout, state="Promoting" if rollout.is_last_step else "Running", reason=said))
    if request == "abort":
        return _aborted(rollout, why, deployments, now)
    if rollout.plan.to not in deployments:
        raise Error("Conflict", f"deployment {rollout.plan.to} is being deleted", target=rollout.endpoint)
    if not full:
        return progress.next_step(rollout, f"promoted by a person{why}", now)
    last = replace(rollout, phase=len(rollout.plan.steps) - 1)
    said = f"promoted to the end at {rollouts.phase_text(rollout)} by a person{why}"
    return Advance(rollouts.ended(last, "Succeeded", said, now), rollouts.traffic(last))


def _aborted(rollout: Rollout, why: str, deployments: Collection[str], now: float) -> Advance:
    back = progress.roll_back(rollout, f"aborted at {rollouts.phase_text(rollout)}{why}", deployments, now)
    return replace(back, rollout=replace(back.rollout, state="Aborted"))
