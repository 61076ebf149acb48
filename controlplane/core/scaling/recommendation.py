"""The number of instances for a demand.

Decides when a deployment grows, shrinks and sleeps, and says why in words. The rules, and what was
measured against Knative's and Kubernetes' ones: ``docs/decisions/0009-number-of-instances.md``.
Must not know proxies, instances or plans.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from amphitrite.controlplane.core.scaling import demand
from amphitrite.controlplane.core.scaling.demand import DemandSample
from amphitrite.controlplane.core.scaling.scaling_policy import QUICK_WINDOW_S, STABLE_WINDOW_S, ScalingPolicy

#: The quick window, whose average is noisy, must be this much above what there is.
_TOLERANCE = 1.1
#: Seconds over which a growth must have lasted before it is expected to go on.
_GROWTH_WINDOW_S = 15.0
#: Growth is expected to go on for as long as an instance needs to start, and at most this long.
_FORESIGHT_S = 60.0
#: Samples may be late by this part of a window.
_COVERAGE = 0.9


@dataclass(frozen=True, slots=True)
class Supply:
    """What a deployment has now.

    - ``count``: the number of instances that is wanted so far.
    - ``ready``, ``starting``: how many of them there are.
    - ``room``: how many more the compute has room for; None if nobody knows.
    - ``used_at``: when the deployment last had a request, or came to be. Seconds since the epoch.
    """

    count: int
    ready: int
    starting: int = 0
    room: int | None = None
    used_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """How many instances the demand at ``at`` alone asked for."""

    at: float
    count: int


@dataclass(frozen=True, slots=True)
class ScalingHistory:
    """``wanted``: of the down window, oldest first. ``shrunk_at``: when instances were last taken
    away."""

    wanted: tuple[Wanted, ...] = ()
    shrunk_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Recommendation:
    """``count``: of instances. ``reason``: one line for people; empty if nothing is to change.
    ``wake_at``: when to ask again without a new sample. ``history``: for the next question."""

    count: int
    reason: str
    wake_at: float
    history: ScalingHistory = field(default_factory=ScalingHistory)


def recommend(
    samples: Sequence[DemandSample], now: float, policy: ScalingPolicy, supply: Supply, history: ScalingHistory
) -> Recommendation:
    """How many instances there should be.

    ``samples``: oldest first, of the last ``policy.kept_s``. Without a recent one nothing changes,
    but for the limits of the policy.
    """
    wake_at = now + policy.polling_interval_s
    kept = tuple(one for one in history.wanted if one.at > now - policy.down_window_s)
    limited = min(max(supply.count, policy.min_instances), policy.max_instances)
    if limited != supply.count:
        limit = f"min_instances {policy.min_instances}, max_instances {policy.max_instances}"
        return Recommendation(limited, f"{supply.count} -> {limited}: {limit}", wake_at, ScalingHistory(kept, now))
    if not samples or samples[-1].at < now - policy.stale_s:
        return Recommendation(supply.count, "", wake_at, ScalingHistory(kept, history.shrunk_at))
    wanted, why = _wanted(samples, now, policy, supply)
    history = ScalingHistory((*kept, Wanted(now, wanted)), history.shrunk_at)
    if wanted > supply.count:
        return _grow(wanted, why, wake_at, supply, history)
    return _shrink(samples, now, policy, supply, history, wake_at)


def replayed(
    samples: Sequence[DemandSample], now: float, policy: ScalingPolicy, supply: Supply, shrunk_at: float
) -> ScalingHistory:
    """The history that ``recommend`` would have made at each sample of the down window, for who has
    not been asked then. ``samples``: as far back as there are any."""
    wanted: list[Wanted] = []
    for n, sample in enumerate(samples):
        if sample.at <= now - policy.down_window_s:
            continue
        if not wanted or sample.at - wanted[-1].at >= 0.9 * policy.polling_interval_s:
            wanted.append(Wanted(sample.at, _wanted(samples[: n + 1], sample.at, policy, supply)[0]))
    return ScalingHistory(tuple(wanted), shrunk_at)


def _wanted(samples: Sequence[DemandSample], now: float, policy: ScalingPolicy, supply: Supply) -> tuple[int, str]:
    """The number for the demand of now, within the policy's limits, and the demand in words."""
    stable = demand.within(samples, now, STABLE_WINDOW_S)
    quick = demand.within(samples, now, max(QUICK_WINDOW_S, policy.polling_interval_s))
    duration_s = demand.mean_duration_s(stable)
    per_instance = policy.per_instance * policy.target
    average, lately = demand.mean_demand(stable, duration_s), demand.mean_demand(quick, duration_s)
    window_s, load = demand.covered_s(stable), average
    if lately > max(average, supply.count * per_instance * _TOLERANCE):
        window_s, load = demand.covered_s(quick), lately
        ahead_s = min(policy.start_s, _FORESIGHT_S)
        load += ahead_s * demand.steady_growth(samples, now, _GROWTH_WINDOW_S, duration_s)
    count = math.ceil(round(load / per_instance, 6))
    at_once = max(demand.mean_demand((sample,), duration_s) for sample in quick) if _refuses(quick) else 0.0
    if math.ceil(at_once / policy.per_instance) > count:
        # Nobody can wait for an average while requests are refused. A peak may use all there is.
        count, load, window_s = math.ceil(at_once / policy.per_instance), at_once, policy.polling_interval_s
    if not policy.min_instances and not supply.ready:
        # A deployment that wakes. How long its requests take is not known yet, only how many wait.
        count = min(count, max(supply.count, 1))
    if not count and not all(sample.is_idle for sample in quick):
        count = 1  # However little it is, somebody has to answer it.
    count = min(max(count, policy.min_instances), policy.max_instances)
    many = f"{load:.0f} requests" if load >= 1.5 else "1 request" if load > 0.5 else f"{load:.1f} requests"
    words = f"{many} at once on {max(supply.ready, supply.count)} x {policy.per_instance}"
    return count, f"{words} for {window_s:.0f} s, target {100 * policy.target:.0f} %"


def _refuses(samples: Sequence[DemandSample]) -> bool:
    return any(sample.refused for sample in samples)


def _grow(wanted: int, why: str, wake_at: float, supply: Supply, history: ScalingHistory) -> Recommendation:
    fits = (
        wanted if supply.room is None else min(wanted, max(supply.count, supply.ready + supply.starting + supply.room))
    )
    if fits == supply.count:
        return Recommendation(fits, "", wake_at, history)
    short = "" if fits == wanted else f"; {wanted} are needed, and the compute has room for {fits}"
    return Recommendation(fits, f"{supply.count} -> {fits}: {why}{short}", wake_at, history)


def _shrink(
    samples: Sequence[DemandSample],
    now: float,
    policy: ScalingPolicy,
    supply: Supply,
    history: ScalingHistory,
    wake_at: float,
) -> Recommendation:
    """Fewer instances, once nothing in the whole down window has asked for more: at most half of
    them at a time."""
    stays = Recommendation(supply.count, "", wake_at, history)
    if supply.count == 1 and not policy.min_instances:
        asleep = _sleeps(samples, now, policy, supply)
        return Recommendation(0, f"1 -> 0: {asleep}", wake_at, ScalingHistory(history.wanted, now)) if asleep else stays
    window_s = policy.down_window_s
    seen_s = demand.covered_s(demand.within(samples, now, window_s))
    if seen_s < _COVERAGE * window_s or now - history.shrunk_at < window_s:
        return stays
    peak = max(one.count for one in history.wanted)
    if now - history.wanted[0].at < _COVERAGE * window_s:
        return stays
    if not peak and now - supply.used_at < policy.idle_timeout_s:
        peak = 1
    count = max(peak, supply.count // 2 if peak else 0)
    if count >= supply.count:
        return stays
    why = f"at most {peak} were needed in the last {window_s:.0f} s" if count else _idle_text(now, policy, supply)
    shrunk = ScalingHistory(history.wanted, now)
    return Recommendation(count, f"{supply.count} -> {count}: {why}", wake_at, shrunk)


def _sleeps(samples: Sequence[DemandSample], now: float, policy: ScalingPolicy, supply: Supply) -> str:
    """Why the last instance is not needed; empty if it is. Only the time without a request counts,
    and that the samples cover it: an average may remember requests for longer."""
    seen = demand.within(samples, now, min(policy.idle_timeout_s, policy.down_window_s))
    seen_s = demand.covered_s(seen)
    if now - supply.used_at < policy.idle_timeout_s or not all(sample.is_idle for sample in seen):
        return ""
    if seen_s < _COVERAGE * min(policy.idle_timeout_s, policy.down_window_s):
        return ""
    return _idle_text(now, policy, supply)


def _idle_text(now: float, policy: ScalingPolicy, supply: Supply) -> str:
    return f"no request for {now - supply.used_at:.0f} s, idle_timeout {policy.idle_timeout_s:.0f} s"
