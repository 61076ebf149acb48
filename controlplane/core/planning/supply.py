"""What instances a deployment has, lacks and no longer needs.

Decides which workload may be routed, which slots to start now or later, and which instances must go on. Must not know
how requests are split, nor how anything is started.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from amphitrite.controlplane.core.capacity import capacity_policy
from amphitrite.controlplane.core.desired.resources import Deployment, Probe, WorkloadSpec
from amphitrite.controlplane.core.observed.observations import Fault, Instance, ModelFetch
from amphitrite.controlplane.core.planning.rollout import (
    FAILURES_TO_FAIL,
    KEPT_EXITED,
    backoff_s,
    failed,
    failures_in_a_row,
    load_deadline_s,
    overdue,
    stable,
)


@dataclass(frozen=True, slots=True)
class Start:
    """Start attempt number ``attempt`` of a workload's slot."""

    workload: WorkloadSpec
    slot: int
    attempt: int
    readiness: Probe
    liveness: Probe
    request_timeout_s: float = 5.0


@dataclass(frozen=True, slots=True)
class Supply:
    """The instances behind one deployment after this pass.

    ``routed``: the workload that the table shall name, None while there is none. ``serving``: its addressable
    instances. ``ready``: ready instances of the wanted workload. ``missing``: slots of it that hold no living
    instance. ``kept``: ids that must neither be stopped nor forgotten. ``failures``: the longest row of failures over
    its slots that are not ready; ``reason``: the newest of them, in the server's own words. ``replacing``: instances of
    another workload are still there. ``overdue``: ids of those that take too long to load. ``look_at``: the next time
    at which something is due, a start or the end of loading. ``fault``: what keeps a wanted instance from getting on,
    room apart; ``scarce``: of those that lack room. ``former``: ready instances of the workload to be replaced.
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
    look_at: float | None
    overdue: frozenset[str]
    replacing: bool
    engine: str | None
    notes: tuple[str, ...]
    fault: Fault | None = None
    scarce: tuple[Fault, ...] = ()
    former: int = 0
    fetches: tuple[tuple[str, ModelFetch], ...] = ()

    @property
    def complete(self) -> bool:
        """Every wanted instance is ready and the table shall name their workload."""
        return self.routed == self.deployment.workload and self.ready == self.deployment.instance_count

    @property
    def obstacle(self) -> Fault | None:
        """What to tell about an instance that does not get on."""
        return self.fault or (self.scarce[0] if self.scarce else None)

    @property
    def failing(self) -> bool:
        """It does not come up, and only a change (of it, or of what it runs on) will help."""
        stuck = self.fault is not None or (bool(self.scarce) and self.deployment.capacity_policy == "refuse")
        return (self.failures >= FAILURES_TO_FAIL or stuck) and self.ready < self.deployment.instance_count


def supply(deployment: Deployment, instances: Iterable[Instance], routed_before: str | None, now: float) -> Supply:
    """``instances``: those of this deployment, of any workload. ``routed_before``: the workload that the published
    table names. The wanted workload is routed when all of it is ready, or when some of it is and nothing else serves.
    """
    by_workload: dict[str, list[Instance]] = {}
    # How long a pod may load is for the kubelet to judge, by its startup probe.
    deadline_s = load_deadline_s(deployment.readiness_probe) if deployment.workload.pod is None else math.inf
    late, loaded_by = set(), []
    for instance in instances:
        if instance.phase == "starting":
            if overdue(instance, deadline_s, now):
                late.add(instance.id)
            elif deadline_s < math.inf:
                loaded_by.append(instance.started_at + deadline_s)
        by_workload.setdefault(instance.workload.name, []).append(instance)
    wanted = deployment.workload
    mine = by_workload.get(wanted.name, [])
    before = by_workload.get(routed_before or "", [])
    slots = range(deployment.instance_count)
    ready_slots = {i.slot for i in mine if i.phase == "ready" and i.live and i.slot in slots}
    ready = len(ready_slots)

    routed = before[0].workload if before else None
    former = 0 if routed_before == wanted.name else sum(1 for i in before if i.phase == "ready" and i.live)
    enough = ready == deployment.instance_count or capacity_policy.takes_over(deployment.capacity_policy, ready, former)
    if routed_before == wanted.name or enough or (ready and not former):
        routed = wanted

    starts, retries = _fill(deployment, wanted, slots, mine, deadline_s, now)
    kept = _kept(mine, slots, deadline_s, now)
    routed_count = deployment.instance_count
    if routed is not None and routed != wanted:
        # The old workload serves until the new one is ready, so it is kept up to strength too.
        leaves, settled_at = capacity_policy.give_way(deployment.capacity_policy, mine, before, now)
        old_slots = sorted({i.slot for i in before if not i.requested_stop} - ({leaves.slot} if leaves else set()))
        loaded_by += [] if settled_at is None else [settled_at]
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
        look_at=min((*retries, *loaded_by), default=None),
        overdue=frozenset(late),
        replacing=any(w != wanted.name and i.phase != "exited" for w, many in by_workload.items() for i in many),
        engine=next((i.engine for i in mine if i.engine), None),
        notes=tuple(sorted({i.note for i in mine if i.note})),
        fault=next((fault for fault in faults if not fault.scarce), None),
        scarce=capacity_policy.waiting(i for attempts in unready for i in attempts),
        former=former,
        fetches=tuple((i.id, i.model_fetch) for i in mine if i.model_fetch is not None and i.phase != "exited"),
    )


def timeless(instances: Iterable[Instance]) -> bool:
    """Whether ``supply`` gives the same for these at any time: what waits for a time is loading, ending or exited."""
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
    """Starts that are due now, and the times of those that are not yet."""
    starts: list[Start] = []
    retries: list[float] = []
    for slot in slots:
        attempts = [i for i in instances if i.slot == slot]
        if any(i.phase != "exited" for i in attempts):
            continue
        failures = failures_in_a_row(attempts, deadline_s, now, deployment.changed_at)
        due = max((i.exited_at or now for i in attempts), default=now) + backoff_s(failures)
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
    """The newest living attempt of each slot, and the exited ones that still tell something."""
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
    told = [(i, _reason(i, deadline_s)) for i in instances if failed(i, deadline_s)]
    newest = max((t for t in told if t[1]), key=lambda t: (t[0].exited_at or 0.0, t[0].attempt), default=None)
    return newest[1] if newest else None


def _reason(instance: Instance, deadline_s: float) -> str | None:
    if instance.requested_stop and overdue(instance, deadline_s, instance.started_at):
        return (
            f"its models were not ready {deadline_s:.0f} s after its start, so it was stopped; what needs longer says "
            "so in readiness_probe (initial_delay + period * failure_threshold)"
        )
    return instance.reason
