"""How a rollout goes on: from what was counted, from what is, and from the time.

Decides each step, each verdict's effect, and when to look again. Pure: the same values give the
same answer, so a process that dies at any point repeats it. Must not know agents' counters, routes
or rows.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from amphitrite.controlplane.core.history.traffic_history import Shares, Traffic
from amphitrite.controlplane.core.rollouts import judgement as judgements
from amphitrite.controlplane.core.rollouts import traffic_rollout as rollouts
from amphitrite.controlplane.core.rollouts.judgement import Verdict
from amphitrite.controlplane.core.rollouts.request_counts import Reading, Readings, largest, remembered, since
from amphitrite.controlplane.core.rollouts.traffic_rollout import SHADOW, WAITING, Rollout
from amphitrite.schemas.names import key


@dataclass(frozen=True, slots=True)
class Facts:
    """What is, besides what was counted.

    - ``traffic``: as stored. ``in_force``: all proxies route by it.
    - ``deployments``: the names of those that are not being deleted. ``is_leaving``: the endpoint
      is being deleted.
    - ``ready``: the deployment that is judged can be routed. ``version``: differs after a change
      of what it runs.
    """

    traffic: Traffic
    in_force: bool
    deployments: Collection[str]
    ready: bool
    version: str
    is_leaving: bool = False


@dataclass(frozen=True, slots=True)
class Advance:
    """``traffic``: what to store together with ``rollout``; None: it stays. ``wake_at``: when to
    look again although nothing was counted; None: nothing is due."""

    rollout: Rollout
    traffic: Traffic | None = None
    wake_at: float | None = None


def advance(rollout: Rollout, found: Readings, facts: Facts, now: float) -> Advance:
    """The rollout after one look."""
    if not rollout.is_active:
        return Advance(rollout)
    if (lost := _lost(rollout, facts)) is not None:
        return Advance(rollouts.ended(rollout, "Aborted", lost, now))
    if rollout.version not in ("", facts.version):
        rollout = replace(rollouts.with_fresh_judgements(rollout), began_at=None, version=facts.version)
    fresh = since(rollout.last, found, rollout.started_at)
    rollout = replace(_observed(rollout, fresh), last=remembered(rollout.last, found), version=facts.version)
    verdict = judgements.verdict(rollouts.current(rollout))
    if verdict.outcome == "roll back" and rollout.phase != WAITING:
        return roll_back(rollout, f"{verdict.reason}, at {rollouts.phase_text(rollout)}", facts.deployments, now)
    if rollout.phase == WAITING:
        return _begin(rollout, facts, now)
    if rollout.began_at is None:
        if not facts.in_force:
            waiting = f"{rollouts.phase_text(rollout)}: until all proxies have it"
            return Advance(rollout if rollout.state == "Paused" else _going_on(rollout, waiting))
        # What was counted until now was of the step before.
        rollout = replace(rollout, began_at=now)
    return _judged(rollout, verdict, now)


def next_step(rollout: Rollout, evidence: str, now: float) -> Advance:
    """The next phase; after the last one, the end."""
    if rollout.is_last_step:
        reason = f"{rollout.plan.to} has {rollout.percent} % of the traffic; {evidence}"
        return Advance(rollouts.ended(rollout, "Succeeded", reason, now))
    phase = SHADOW if rollout.phase == WAITING and rollout.plan.shadow_s else max(rollout.phase, SHADOW) + 1
    before = rollouts.phase_text(rollout)
    rollout = replace(rollout, phase=phase, entered_at=now, began_at=None)
    rollout = replace(rollout, judgement=judgements.next_step(rollout.judgement))
    reason = f"{rollouts.phase_text(rollout)}; {before}: {evidence}"
    return Advance(_going_on(rollout, reason), rollouts.traffic(rollout), now)


def roll_back(rollout: Rollout, reason: str, deployments: Collection[str], now: float) -> Advance:
    """The traffic from before, in one change. A deployment of it that is gone is left out."""
    before = _still_there(rollout.plan.base, deployments)
    if not before:
        lost = f"{reason}; the traffic stays, because no deployment that had it before is left"
        return Advance(rollouts.ended(rollout, "Aborted", lost, now))
    mirrored = {name: percent for name, percent in rollout.plan.mirrored.items() if name in deployments}
    return Advance(rollouts.ended(rollout, "RolledBack", reason, now), Traffic(before, mirrored))


def _lost(rollout: Rollout, facts: Facts) -> str | None:
    """Why the rollout cannot go on."""
    if facts.is_leaving:
        return "the endpoint is being deleted"
    if rollout.plan.to not in facts.deployments:
        return f"deployment {rollout.plan.to} was deleted"
    wanted = rollouts.traffic(rollout)
    if [_lower(wanted.live), _lower(wanted.mirrored)] != [_lower(facts.traffic.live), _lower(facts.traffic.mirrored)]:
        return "its traffic was changed by somebody else"
    return None


def _observed(rollout: Rollout, fresh: Reading) -> Rollout:
    """With what was counted. Requests that a client sends to the deployment by name, before it has
    any traffic, say nothing about it."""
    if rollout.phase == SHADOW and fresh.differences:
        rollout = replace(rollout, differences=largest(rollout.differences, fresh.differences))
    if rollout.phase == SHADOW and any(one.total for one in fresh.copies.values()):
        return replace(rollout, shadow=judgements.observe(rollout.shadow, fresh.copies, fresh.other))
    if rollout.phase >= 0 and any(one.total for one in fresh.new.values()):
        return replace(rollout, judgement=judgements.observe(rollout.judgement, fresh.new, fresh.other))
    return rollout


def _begin(rollout: Rollout, facts: Facts, now: float) -> Advance:
    if rollout.state == "Paused":
        return Advance(rollout)
    if not facts.ready:
        return Advance(
            replace(rollout, state="Running", reason=f"it waits until deployment {rollout.plan.to} is ready")
        )
    if not facts.in_force:
        return Advance(replace(rollout, state="Running", reason="it waits until the endpoint's last change is done"))
    return next_step(rollout, "the deployment is ready", now)


def _judged(rollout: Rollout, verdict: Verdict, now: float) -> Advance:
    """What the verdict means for a phase that is in force."""
    began = rollout.began_at or now
    bake_s = rollout.plan.shadow_s if rollout.phase == SHADOW else rollout.plan.bake_s
    until = began + bake_s
    place = rollouts.phase_text(rollout)
    if rollout.state == "Paused":
        return Advance(rollout)
    said = _with_time(rollout, verdict, now - began)
    if now < until:
        return Advance(_going_on(rollout, f"{place}; {said}"), None, until)
    if verdict.outcome == "promote":
        return next_step(rollout, verdict.reason, now)
    waits: rollouts.State = "NoData" if verdict.outcome == "no data" else "Inconclusive"
    return Advance(replace(rollout, state=waits, reason=f"{place}; {said}"))


def _going_on(rollout: Rollout, reason: str) -> Rollout:
    return replace(rollout, state="Promoting" if rollout.is_last_step else "Running", reason=reason)


def _with_time(rollout: Rollout, verdict: Verdict, elapsed_s: float) -> str:
    """The verdict, with the time that the missing requests take at the present rate."""
    found = max((one.new.total for one in rollouts.current(rollout).trials.values()), default=0)
    if not verdict.needed or not found or elapsed_s < 1:
        return verdict.reason
    seconds = verdict.needed * elapsed_s / found
    took = f"{seconds / 3600:.1f} h" if seconds > 5400 else f"{max(seconds / 60, 1):.0f} min"
    return f"{verdict.reason}, about {took} as it goes" if seconds > 60 else verdict.reason


def _still_there(base: Shares, deployments: Collection[str]) -> dict[str, int]:
    left = {name: percent for name, percent in base.items() if name in deployments}
    total = sum(left.values())
    if not total or total == sum(base.values()):
        return left
    scaled = {name: percent * 100 // total for name, percent in left.items()}
    largest = max(scaled, key=lambda name: (scaled[name], name))
    return {**scaled, largest: scaled[largest] + 100 - sum(scaled.values())}


def _lower(shares: Shares) -> dict[str, int]:
    return {key(name): percent for name, percent in shares.items()}
