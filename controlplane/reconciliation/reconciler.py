"""The loop that brings the actual state in line with the desired state.

Decides the order of side effects in one pass, and when the next pass begins. After a crash at any
step, a later pass continues from the facts. Must not know why something is done
(``core.planning``).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from amphitrite.controlplane.agents.agent_registry import Agents, TableFeed
from amphitrite.controlplane.core.observed.observations import newest_version, of_this_history
from amphitrite.controlplane.core.observed.status import Ref, Status, World
from amphitrite.controlplane.core.planning.memo import Memory
from amphitrite.controlplane.core.planning.plan import Plan, complete, draft
from amphitrite.controlplane.core.planning.rollout import backoff_s
from amphitrite.controlplane.reconciliation.leader_loop import require_lead
from amphitrite.controlplane.runtimes.runtime import Runtime
from amphitrite.controlplane.store.state.store import Store
from amphitrite.dataplane.table.routing_table import MAX_UNSIZED_BODY_BYTES, RoutingTable, TokenIssuer
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key

log = logging.getLogger(__name__)

#: The longest pause between passes. It finds changes without an event, such as a silent agent.
RESYNC_S = 5.0


def _no_issuers(published: Sequence[TokenIssuer], now: float) -> Sequence[TokenIssuer]:
    return ()


class Reconciler:
    """Runs passes. Call ``run_once`` and ``run`` from one thread. ``wake`` is safe from any
    thread."""

    def __init__(
        self,
        store: Store,
        runtime: Runtime,
        agents: Agents,
        feed: TableFeed,
        clock: Callable[[], float],
        *,
        max_body_bytes: int,
        max_unsized_body_bytes: int = MAX_UNSIZED_BODY_BYTES,
        may_act: Callable[[], bool] = lambda: True,
        issuers: Callable[[Sequence[TokenIssuer], float], Sequence[TokenIssuer]] = _no_issuers,
    ) -> None:
        """``max_body_bytes``, ``max_unsized_body_bytes``: the limits for one scoring request, which
        the proxies get with the table. ``may_act``: whether this control plane still leads; checked
        before each change. ``issuers``: the issuers of the next table, from those of the last one
        and the time (``reconciliation.token_issuers``).
        """
        self._store, self._runtime, self._agents, self._feed = store, runtime, agents, feed
        self._clock, self._may_act = clock, may_act
        self._max_body_bytes, self._max_unsized_body_bytes = max_body_bytes, max_unsized_body_bytes
        self._issuers = issuers
        self._event = threading.Event()
        self._failed_passes = 0
        self._recorded: dict[Ref, Status] = {}
        self._memory = Memory()
        self.last_pass: float | None = None

    def wake(self) -> None:
        """Starts a pass now. Call it after a change."""
        self._event.set()

    def run_once(self) -> float | None:
        """Makes one pass. Returns the time when the next one is due; None if only ``wake`` starts
        it.

        An error of the runtime becomes the status of its deployment. Any other error is raised.
        """
        now = self._clock()
        world = self._store.load_world()
        # Read first. A compute that becomes known after this waits for the next pass.
        unknown = self._runtime.unknown()
        agents = self._agents.live(now)
        reports = tuple(of_this_history(report, world.table.version) for report in agents)
        self._require_lead()
        issuers = self._issuers(world.table.issuers, now)
        drafted = draft(world, self._runtime.observe(), reports, now, unknown, issuers, self._memory)
        self._publish(drafted.table, above=newest_version(agents))
        plan = complete(drafted, self._memory)
        self._require_lead()
        errors = self._act(plan)
        self._record(world, plan, errors, now)
        if plan.remove:
            self._require_lead()
            self._store.remove(plan.remove, now=now)
        self.last_pass = now
        self._failed_passes = self._failed_passes + 1 if errors else 0
        if errors:
            retry = now + backoff_s(self._failed_passes)
            return retry if plan.wake_at is None else min(retry, plan.wake_at)
        return plan.wake_at

    def run(self, stop: threading.Event) -> None:
        """Makes passes until ``stop`` is set and ``wake`` is called. Logs a failed pass and repeats
        it later."""
        crashes, begun = 0, False
        self._recorded = {}  # Another leader may have written other statuses.
        while not stop.is_set():
            # Cleared before the facts are read, so that a wake during the pass starts another one.
            self._event.clear()
            try:
                if not begun:
                    self._begin_term()
                    begun = True
                wake_at = self.run_once()
                crashes = 0
            except Exception:
                # A former leader, which was suspended, may have begun its term late.
                crashes, begun = crashes + 1, False
                log.exception("the pass failed; the next one starts again from the facts")
                wake_at = self._clock() + backoff_s(crashes)
            pause = RESYNC_S if wake_at is None else min(max(wake_at - self._clock(), 0.0), RESYNC_S)
            self._event.wait(pause)

    def _begin_term(self) -> None:
        """Fences off the leader before this one, which may not know yet that it is."""
        self._require_lead()
        self._store.begin_term()
        self._require_lead()

    def _publish(self, table: RoutingTable, above: int) -> None:
        limits = self._max_body_bytes, self._max_unsized_body_bytes
        if (table.max_body_bytes, table.max_unsized_body_bytes) != limits:
            table = replace(table, max_body_bytes=limits[0], max_unsized_body_bytes=limits[1])
        self._feed.published(self._store.publish(table, above=above))

    def _act(self, plan: Plan) -> dict[Ref, Error]:
        """Starts and stops instances. Returns the errors of starts by deployment."""
        errors: dict[Ref, Error] = {}
        for start in plan.start:
            self._require_lead()
            workload = start.workload
            try:
                log.info("start %s-%d-%d", workload.name, start.slot, start.attempt)
                self._runtime.start(
                    workload, start.slot, start.attempt, start.readiness, start.liveness, start.request_timeout_s
                )
            except Error as error:
                log.warning("cannot start %s: %s", workload.name, error.message)
                errors[Ref(workload.endpoint, workload.deployment)] = error
        for stop in plan.stop:
            self._require_lead()
            log.info("stop %s: %s", stop.instance_id, stop.why)
            try:
                self._runtime.stop(stop.instance_id, stop.grace_s)
            except Error as error:
                # One failing cluster must not delay the others. The next pass tries again.
                log.warning("cannot stop %s: %s", stop.instance_id, error.message)
        for instance_id in plan.forget:
            self._require_lead()
            self._runtime.forget(instance_id)
        return errors

    def _require_lead(self) -> None:
        require_lead(self._may_act)

    def _record(self, world: World, plan: Plan, errors: dict[Ref, Error], now: float) -> None:
        """Writes new statuses, and those that the store may lack for the newest generation."""
        statuses = dict(plan.statuses)
        generations = {Ref(d.endpoint, d.name): d.generation for d in world.deployments} if errors else {}
        for ref, error in errors.items():
            if ref in statuses and statuses[ref].state != "Deleting":
                statuses[ref] = Status("Failed", generations[ref], "Failed", error.message, error)
        unsettled = _unsettled(world)
        changed = {ref: s for ref, s in statuses.items() if self._recorded.get(ref) != s or ref in unsettled}
        if changed:
            self._require_lead()
            self._store.record(changed, now=now)
        self._recorded = statuses


def _unsettled(world: World) -> frozenset[Ref]:
    """Resources whose newest generation has no recorded outcome."""
    endpoints = {Ref(key(e.name)) for e in world.endpoints if e.observed_generation != e.generation}
    deployments = {Ref(d.endpoint, d.name) for d in world.deployments if d.observed_generation != d.generation}
    return frozenset(endpoints | deployments)
