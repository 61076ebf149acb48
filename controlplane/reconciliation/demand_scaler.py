"""The scaler of ``scale_settings`` of type ``target_utilization``.

Decides what is read for a recommendation, and when: a deployment without requests that has as few
instances as it may have costs nothing. ``core.scaling`` decides the number. Must not know who calls
it or how a change is stored. Everything in memory here can be read again: a new leader begins with
the same samples.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from amphitrite.controlplane.agents.agent_registry import Agents
from amphitrite.controlplane.core.capacity import node_capacity
from amphitrite.controlplane.core.desired import instance_types
from amphitrite.controlplane.core.desired.compute_clusters import Compute, find_compute
from amphitrite.controlplane.core.desired.resources import Deployment
from amphitrite.controlplane.core.desired.scale_settings import TARGET_UTILIZATION, Mode
from amphitrite.controlplane.core.observed.observations import Instance
from amphitrite.controlplane.core.observed.status import Ref
from amphitrite.controlplane.core.scaling import proxies, recommendation
from amphitrite.controlplane.core.scaling.demand import DemandSample
from amphitrite.controlplane.core.scaling.recommendation import Recommendation, ScalingHistory, Supply, Wanted
from amphitrite.controlplane.core.scaling.scales import Scale, ScaleChange, ScaleEvent
from amphitrite.controlplane.core.scaling.scaling_policy import ScalingPolicy
from amphitrite.controlplane.reconciliation.autoscaler import Proposals
from amphitrite.controlplane.runtimes.runtime import Runtime
from amphitrite.controlplane.store.reports.demand_samples import StoredFlush, StoredSamples
from amphitrite.controlplane.store.state.store import Store
from amphitrite.schemas.errors import Error

#: How often old samples are deleted, in seconds.
_PRUNE_S = 30.0
#: Samples are kept for so many times the longest window, so that a new leader finds out what was
#: wanted at each moment of a window.
_KEPT_WINDOWS = 2.0
_KEPT_AT_LEAST_S = 300.0
#: How far the stored time of the last request may be behind, in seconds.
_USED_S = 30.0


@dataclass(slots=True)
class _Memory:
    """Of one deployment. ``newest``: the id of the flush that its last recommendation knew."""

    samples: dict[str, deque[DemandSample]] = field(default_factory=dict)
    history: ScalingHistory | None = None
    newest: int = 0
    seen: int = 0
    used_at: float = 0.0


class TargetUtilization:
    """A ``Scaler``. ``begin`` at the start of each term; all of it in one thread."""

    def __init__(
        self,
        store: Store,
        samples: StoredSamples,
        agents: Agents,
        runtime: Runtime,
        computes: Callable[[], Sequence[Compute]],
    ) -> None:
        """``computes``: those with nodes."""
        self._store, self._samples, self._agents, self._runtime = store, samples, agents, runtime
        self._computes = computes
        self._memories: dict[Ref, _Memory] = {}
        self._read = 0
        self._pruned_at = 0.0

    def begin(self) -> None:
        """Forgets everything: another leader may have scaled since."""
        self._memories, self._read, self._pruned_at = {}, 0, 0.0

    def propose(self, now: float) -> Proposals:
        found = {
            ref: (deployment, scale)
            for ref, (deployment, scale) in self._store.scaled().items()
            if deployment.scale_settings is not None
            and scale.scaler == TARGET_UTILIZATION
            # Nobody asks one that is paused. Afterwards what it had counts again.
            and deployment.pause is None
        }
        self._memories = {ref: memory for ref, memory in self._memories.items() if ref in found}
        if not found:
            return Proposals()
        for flush in self._samples.since(self._read):
            self._read = flush.id
            self._keep(flush, found)
        live = [report.id for report in self._agents.live(now)]
        view = _View(self._runtime)
        changes = [
            change
            for ref, (deployment, scale) in found.items()
            if (change := self._change(ref, deployment, scale, live, view, now)) is not None
        ]
        policies = [_policy(deployment, scale) for deployment, scale in found.values()]
        self._prune(max(policy.kept_s for policy in policies), now)
        return Proposals(tuple(changes), now + min(policy.polling_interval_s for policy in policies))

    def _keep(self, flush: StoredFlush, found: Mapping[Ref, object]) -> None:
        for endpoint, deployment, at, seconds, in_flight, held, answered, busy_s, refused in flush.content:
            ref = Ref(endpoint, deployment)
            if ref not in found:
                continue
            memory = self._memories.setdefault(ref, _Memory())
            sample = DemandSample(at, seconds, in_flight, held, answered, busy_s, refused)
            memory.samples.setdefault(flush.agent, deque()).append(sample)
            memory.seen = flush.id
            if not sample.is_idle:
                memory.used_at = max(memory.used_at, at)

    def _prune(self, kept_s: float, now: float) -> None:
        if now - self._pruned_at < _PRUNE_S:
            return
        self._pruned_at = now
        self._samples.prune(now - max(_KEPT_WINDOWS * kept_s, _KEPT_AT_LEAST_S))

    def _change(
        self, ref: Ref, deployment: Deployment, scale: Scale, live: list[str], view: _View, now: float
    ) -> ScaleChange | None:
        policy = _policy(deployment, scale)
        memory = self._memories.setdefault(ref, _Memory())
        first = memory.history is None
        _drop_old(memory, now - _KEPT_WINDOWS * policy.kept_s)
        used_at = max(memory.used_at, scale.used_at)
        settings = deployment.scale_settings
        assert settings is not None
        applies = settings.mode == "apply"
        count = (
            scale.count if applies else deployment.instance_count if scale.recommended is None else scale.recommended
        )
        within = policy.min_instances <= count <= policy.max_instances
        if within and not first and memory.newest == memory.seen:
            return None  # Nobody has told anything new.
        memory.newest = memory.seen
        idle = all(sample.is_idle for samples in memory.samples.values() for sample in samples)
        if within and idle and count == policy.min_instances and not first:
            memory.history = ScalingHistory((), scale.shrunk_at)
            return None
        seen = proxies.together(memory.samples, policy)
        supply = Supply(count, count, used_at=used_at)
        history = memory.history
        if history is None:
            history = recommendation.replayed(seen, now, policy, supply, scale.shrunk_at)
        history = replace(history, shrunk_at=scale.shrunk_at)
        found = recommendation.recommend(seen, now, policy, supply, history)
        if found.count > count:
            scale = replace(scale, start_s=view.start_s(deployment, scale.start_s))
            policy = _policy(deployment, scale)
            supply = view.supply(deployment, self._computes(), supply) if applies else supply
            found = recommendation.recommend(seen, now, policy, supply, history)
        if proxies.silent(memory.samples, live, now, policy):
            # What a silent proxy sees may be more than what the others do: nothing is taken away,
            # and the time of the silence does not count as quiet.
            wanted = tuple(Wanted(one.at, max(one.count, count)) for one in found.history.wanted[-1:])
            memory.history = replace(found.history, wanted=(*found.history.wanted[:-1], *wanted))
            if found.count < count and within:
                return None
        else:
            memory.history = found.history
        return _stored(ref, deployment, scale, count, found, used_at, now, applies=applies)


def _stored(
    ref: Ref,
    deployment: Deployment,
    scale: Scale,
    count: int,
    found: Recommendation,
    used_at: float,
    now: float,
    *,
    applies: bool,
) -> ScaleChange | None:
    """The write that follows from a recommendation; None if there is none."""
    if found.count == count:
        # Only a deployment that may sleep needs to know for long when it was used.
        settings = deployment.scale_settings
        may_sleep = settings is not None and not settings.min_instances
        if may_sleep and used_at - scale.used_at >= _USED_S:
            return ScaleChange(ref, scale, replace(scale, used_at=used_at))
        return None
    mode: Mode = "apply" if applies else "recommend"
    event = ScaleEvent(now, count, found.count, found.reason, TARGET_UTILIZATION, mode)
    after = replace(scale, reason=found.reason, changed_at=now, shrunk_at=found.history.shrunk_at, used_at=used_at)
    if applies:
        return ScaleChange(ref, scale, replace(after, count=found.count, recommended=None), event)
    return ScaleChange(ref, scale, replace(after, count=deployment.instance_count, recommended=found.count), event)


class _View:
    """What runs now, observed at most once in a pass, and only if something is to grow."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._by_workload: dict[str, list[Instance]] | None = None

    def start_s(self, deployment: Deployment, known: float) -> float:
        """Seconds that the deployment's newest ready instance has needed; ``known`` if there is
        none."""
        took = [
            (i.started_at, i.ready_at - i.started_at) for i in self._instances(deployment) if i.ready_at is not None
        ]
        return max(max(took)[1], 0.0) if took else known

    def supply(self, deployment: Deployment, computes: Sequence[Compute], supply: Supply) -> Supply:
        """``supply`` with what runs and what fits. An instance that lacks capacity does not count
        as starting."""
        phases = [i.phase for i in self._instances(deployment) if i.fault is None or not i.fault.lacks_capacity]
        ready, starting = phases.count("ready") + phases.count("unready"), phases.count("starting")
        return replace(supply, ready=ready, starting=starting, room=self._room(deployment, computes))

    def _room(self, deployment: Deployment, computes: Sequence[Compute]) -> int | None:
        """How many more instances fit on the nodes. None if nobody knows."""
        compute = find_compute(deployment.workload.compute, computes)
        if compute is None:
            return None
        try:
            shape = instance_types.shape(deployment.workload.instance_type, compute)
            demand = self._runtime.demand(deployment.workload, shape)
            nodes = None if demand is None else self._runtime.capacity(compute.name)
        except Error:
            return None  # The scheduler has the last word anyway.
        return None if demand is None or nodes is None else node_capacity.fits(nodes, demand, 1).capacity

    def _instances(self, deployment: Deployment) -> list[Instance]:
        if self._by_workload is None:
            self._by_workload = {}
            for instance in self._runtime.observe():
                self._by_workload.setdefault(instance.workload.name, []).append(instance)
        return self._by_workload.get(deployment.workload.name, [])


def _policy(deployment: Deployment, scale: Scale) -> ScalingPolicy:
    settings = deployment.scale_settings
    assert settings is not None
    return ScalingPolicy(
        min_instances=settings.min_instances,
        max_instances=settings.max_instances,
        per_instance=deployment.max_concurrent_requests_per_instance,
        target=settings.target_utilization_percentage / 100,
        polling_interval_s=float(settings.polling_interval),
        idle_timeout_s=float(settings.idle_timeout),
        start_s=scale.start_s,
    )


def _drop_old(memory: _Memory, before: float) -> None:
    for agent, samples in list(memory.samples.items()):
        while samples and samples[0].at < before:
            samples.popleft()
        if not samples:
            del memory.samples[agent]
