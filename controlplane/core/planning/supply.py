"""The instances that a deployment has, needs and no longer needs.

Decides which workload may be routed, which slots to start now or later, and which instances to
keep. Must not know how traffic is split, nor how instances start.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from amphitrite.controlplane.core.capacity import capacity_policy
from amphitrite.controlplane.core.desired.resources import Deployment, Probe, WorkloadSpec
from amphitrite.controlplane.core.observed.observations import Fault, Instance, ModelFetch
from amphitrite.controlplane.core.planning import sleep
from amphitrite.controlplane.core.planning.rollout import (
    FAILURES_TO_FAIL,
    KEPT_EXITED,
    failed,
    failures_in_a_row,
    load_deadline_s,
    overdue,
    restart_delay_s,
    stable,
)
from amphitrite.dataplane.table.routing_table import Hold, Target


@dataclass(frozen=True, slots=True)
class Start:
    """Start attempt number ``attempt`` in a slot of a workload."""

    workload: WorkloadSpec
    slot: int
    attempt: int
    readiness: Probe
    liveness: Probe
    request_timeout_s: float = 5.0


@dataclass(frozen=True, slots=True)
class Supply:
    """The instances of one deployment after this pass.

    * ``routed``: the workload that the table names, None if it names none. ``routed_count``: how
      many instances of it are wanted. ``serving``: its instances that have an address.
    * ``ready``: ready instances of the wanted workload. ``missing``: its slots without a living
      instance. ``starts``: what to start now.
    * ``kept``: ids of instances that are neither stopped nor forgotten. ``overdue``: ids of those
      that did not load in time.
    * ``failures``: the longest row of failures among its slots that are not ready. ``reason``: of
      the newest failure, in the server's words. ``retry_at``: when the next attempt starts.
    * ``replacing``: instances of another workload are still running. ``former_ready``: ready
      instances of the workload that is being replaced.
    * ``fault``: what keeps a wanted instance from becoming ready, other than capacity.
      ``capacity_faults``: those of instances that lack capacity.
    * ``hold``: whether its requests are held. ``ending``: how many instances still run though none
      is wanted.
    * ``wake_at``: when the next start or load deadline is due. Times are seconds since the epoch.
    """

    deployment: Deployment
    routed: WorkloadSpec | None
    routed_count: int
    serving: tuple[Instance, ...]
    ready: int
    missing: int
    starts: tuple[Start, ...]
    kept: frozenset[str]
    failures: int
    reason: str | None
    retry_at: float | None
    wake_at: float | None
    overdue: frozenset[str]
    replacing: bool
    engine: str | None
    notes: tuple[str, ...]
    fault: Fault | None = None
    capacity_faults: tuple[Fault, ...] = ()
    former_ready: int = 0
    fetches: tuple[tuple[str, ModelFetch], ...] = ()
    hold: Hold = "never"
    ending: int = 0

    @property
    def complete(self) -> bool:
        """Whether every wanted instance is ready and the table names their workload; with none
        wanted, whether none runs."""
        if self.deployment.instance_count == 0:
            return self.ending == 0
        return self.routed == self.deployment.workload and self.ready == self.deployment.instance_count

    @property
    def obstacle(self) -> Fault | None:
        """The fault to report for an instance that does not become ready."""
        return self.fault or (self.capacity_faults[0] if self.capacity_faults else None)

    @property
    def failing(self) -> bool:
        """Whether it does not become ready and only a change (of it or of its compute)
        will help."""
        stuck = self.fault is not None or (bool(self.capacity_faults) and self.deployment.capacity_policy == "refuse")
        return (self.failures >= FAILURES_TO_FAIL or stuck) and self.ready < self.deployment.instance_count


def supply(deployment: Deployment, instances: Sequence[Instance], published: Target | None, now: float) -> Supply:
    """The supply of a deployment.

    ``instances``: all instances of this deployment, of any workload. ``published``: its target in
    the published table. The wanted workload is routed when all its instances are ready, or when
    some are and nothing else serves.
    """
    found = _supply(deployment, instances, published.cluster if published is not None else None, now)
    hold = sleep.hold(deployment, instances, published, failing=found.failing)
    if deployment.instance_count > 0:
        return replace(found, hold=hold, routed=None if hold == "now" else found.routed)
    ending = sum(1 for i in instances if i.phase != "exited")
    return replace(found, hold=hold, routed=None, serving=(), ending=ending)


def _supply(deployment: Deployment, instances: Iterable[Instance], routed_before: str | None, now: float) -> Supply:
    by_workload: dict[str, list[Instance]] = {}
    # The kubelet limits how long a pod may load, by the startup probe.
    deadline_s = load_deadline_s(deployment.readiness_probe) if deployment.workload.pod is None else math.inf
    late, deadlines = set(), []
    for instance in instances:
        if instance.phase == "starting":
            if overdue(instance, deadline_s, now):
                late.add(instance.id)
            elif deadline_s < math.inf:
                deadlines.append(instance.started_at + deadline_s)
        by_workload.setdefault(instance.workload.name, []).append(instance)
    wanted = deployment.workload
    mine = by_workload.get(wanted.name, [])
    before = by_workload.get(routed_before or "", [])
    slots = range(deployment.instance_count)
    ready_slots = {i.slot for i in mine if i.phase == "ready" and i.live and i.slot in slots}
    ready = len(ready_slots)

    routed = before[0].workload if before else None
    former_ready = 0 if routed_before == wanted.name else sum(1 for i in before if i.phase == "ready" and i.live)
    enough = ready == deployment.instance_count or capacity_policy.can_take_over(
        deployment.capacity_policy, ready, former_ready
    )
    if not slots:
        routed = None
    elif routed_before == wanted.name or enough or (ready and not former_ready):
        routed = wanted

    starts, retries = _fill(deployment, wanted, slots, mine, deadline_s, now)
    kept = _kept(mine, slots, deadline_s, now)
    routed_count = deployment.instance_count
    if routed is not None and routed != wanted:
        # The old workload serves until the new one is ready, so its failed instances are restarted
        # too.
        draining, decide_at = capacity_policy.next_to_drain(deployment.capacity_policy, mine, before, now)
        old_slots = sorted({i.slot for i in before if not i.requested_stop} - ({draining.slot} if draining else set()))
        deadlines += [] if decide_at is None else [decide_at]
        routed_count = max(len(old_slots), 1)
        old_starts, old_retries = _fill(deployment, routed, old_slots, before, deadline_s, now)
        starts, retries = starts + old_starts, retries + old_retries
        kept |= _kept(before, old_slots, deadline_s, now)
    serving = tuple(
        i
        for i in sorted(by_workload.get(routed.name, ()) if routed else (), key=lambda i: i.id)
        if i.id in kept and i.phase in ("ready", "unready") and i.live and i.address is not None
    )
    unready = [[i for i in mine if i.slot == slot] for slot in slots if slot not in ready_slots]
    rows = [failures_in_a_row(attempts, deadline_s, now, deployment.changed_at) for attempts in unready]
    faults = [i.fault for attempts in unready for i in attempts if i.fault is not None and i.phase != "exited"]
    return Supply(
        deployment=deployment,
        routed=routed,
        routed_count=routed_count,
        serving=serving,
        ready=ready,
        missing=sum(1 for slot in slots if not any(i.slot == slot and _living(i) for i in mine)),
        starts=tuple(starts),
        kept=kept,
        failures=max(rows, default=0),
        reason=_newest_reason(mine, deadline_s),
        retry_at=min(retries, default=None),
        wake_at=min((*retries, *deadlines), default=None),
        overdue=frozenset(late),
        replacing=any(w != wanted.name and i.phase != "exited" for w, many in by_workload.items() for i in many),
        engine=next((i.engine for i in mine if i.engine), None),
        notes=tuple(sorted({i.note for i in mine if i.note})),
        fault=next((fault for fault in faults if not fault.lacks_capacity), None),
        capacity_faults=capacity_policy.capacity_faults(i for attempts in unready for i in attempts),
        former_ready=former_ready,
        fetches=tuple((i.id, i.model_fetch) for i in mine if i.model_fetch is not None and i.phase != "exited"),
    )


def is_time_independent(instances: Iterable[Instance]) -> bool:
    """Whether ``supply`` is the same at any time: no instance is loading, stopping or exited."""
    return all(i.phase in ("ready", "unready") and i.ready_at is not None for i in instances)


def _living(instance: Instance) -> bool:
    return instance.phase in ("starting", "ready", "unready") and instance.live


def _fill(
    deployment: Deployment,
    workload: WorkloadSpec,
    slots: Iterable[int],
    instances: list[Instance],
    deadline_s: float,
    now: float,
) -> tuple[list[Start], list[float]]:
    """The starts that are due now, and the times of those that are due later."""
    starts: list[Start] = []
    retries: list[float] = []
    for slot in slots:
        attempts = [i for i in instances if i.slot == slot]
        if any(i.phase != "exited" for i in attempts):
            continue
        delay_s = restart_delay_s(attempts, deadline_s, now, deployment.changed_at)
        due = max((i.exited_at or now for i in attempts), default=now) + delay_s
        if not attempts or due <= now:
            attempt = max((i.attempt for i in attempts), default=0) + 1
            starts.append(
                Start(
                    workload,
                    slot,
                    attempt,
                    deployment.readiness_probe,
                    deployment.liveness_probe,
                    deployment.request_timeout_ms / 1000,
                )
            )
        else:
            retries.append(due)
    return starts, retries


def _kept(instances: list[Instance], slots: Iterable[int], deadline_s: float, now: float) -> frozenset[str]:
    """The newest living attempt of each slot, and the exited attempts that are needed for the
    back-off."""
    kept: set[str] = set()
    by_slot: Mapping[int, list[Instance]] = {slot: [] for slot in slots}
    for instance in instances:
        if instance.slot in by_slot:
            by_slot[instance.slot].append(instance)
    for attempts in by_slot.values():
        attempts.sort(key=lambda i: i.attempt, reverse=True)
        living = [i for i in attempts if _living(i) and not overdue(i, deadline_s, now)]
        exited = [i for i in attempts if failed(i, deadline_s)]
        settled = bool(living) and stable(living[0], now)
        kept |= {i.id for i in living[:1]}
        kept |= {i.id for i in exited[: 1 if settled else KEPT_EXITED]}
    return frozenset(kept)


def _newest_reason(instances: list[Instance], deadline_s: float) -> str | None:
    reasons = [(i, _reason(i, deadline_s)) for i in instances if failed(i, deadline_s)]
    newest = max((t for t in reasons if t[1]), key=lambda t: (t[0].exited_at or 0.0, t[0].attempt), default=None)
    return newest[1] if newest else None


def _reason(instance: Instance, deadline_s: float) -> str | None:
    if instance.requested_stop and overdue(instance, deadline_s, instance.started_at):
        return (
            f"its models were not ready {deadline_s:.0f} s after its start, so it was stopped; to allow more, set "
            "readiness_probe (initial_delay + period * failure_threshold)"
        )
    return instance.reason
