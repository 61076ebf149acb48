"""The loop that makes what is there like what is wanted.

Decides the order of side effects in one pass and when the next pass comes. Must not know why anything is done: that is
``core.plan``. The order matters for crashes only in that after each step a later pass can go on from what is there.
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
from amphitrite.controlplane.runtimes.runtime import Runtime
from amphitrite.controlplane.store.state.store import Store
from amphitrite.dataplane.table.routing_table import RoutingTable, TokenIssuer
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key

log = logging.getLogger(__name__)

#: Facts that nobody announces (an agent that went silent, a certificate that ages) are looked at this often.
RESYNC_S = 5.0


def _nobody(published: Sequence[TokenIssuer], now: float) -> Sequence[TokenIssuer]:
    return ()


class Reconciler:
    """``run_once`` is one pass and may be called from one thread only; ``wake`` from any."""

    def __init__(
        self,
        store: Store,
        runtime: Runtime,
        agents: Agents,
        feed: TableFeed,
        clock: Callable[[], float],
        *,
        max_body_bytes: int,
        may_act: Callable[[], bool] = lambda: True,
        issuers: Callable[[Sequence[TokenIssuer], float], Sequence[TokenIssuer]] = _nobody,
    ) -> None:
        """``max_body_bytes``: of one scoring request; goes to the proxies with the table. ``may_act`` is asked before
        each change: a control plane may lose the lead in the middle of a pass. ``issuers``: from those of the last
        table and the time to those of the next (see ``tokens_issuers``)."""
        self._store, self._runtime, self._agents, self._feed = store, runtime, agents, feed
        self._clock, self._max_body_bytes, self._may_act = clock, max_body_bytes, may_act
        self._issuers = issuers
        self._event = threading.Event()
        self._failed_passes = 0
        self._recorded: dict[Ref, Status] = {}
        self._memory = Memory()
        self.last_pass: float | None = None

    def wake(self) -> None:
        """Something may have changed: make a pass now."""
        self._event.set()

    def run_once(self) -> float | None:
        """One pass; the time at which the next one is due at the latest, None for "when woken".

        What the runtime refuses becomes the status of the deployment concerned. Everything else is raised.
        """
        now = self._clock()
        world = self._store.load_world()
        # Asked first: what becomes known in between is at worst left alone until the next pass.
        unknown = self._runtime.unknown()
        agents = self._agents.live(now)
        ours = tuple(of_this_history(report, world.table.version) for report in agents)
        self._require_lead()
        issuers = self._issuers(world.table.issuers, now)
        drafted = draft(world, self._runtime.observe(), ours, now, unknown, issuers, self._memory)
        self._publish(drafted.table, above=newest_version(agents))
        decided = complete(drafted, self._memory)
        self._require_lead()
        refused = self._act(decided)
        self._record(world, decided, refused, now)
        if decided.remove:
            self._require_lead()
            self._store.remove(decided.remove, now=now)
        self.last_pass = now
        self._failed_passes = self._failed_passes + 1 if refused else 0
        if refused:
            retry = now + backoff_s(self._failed_passes)
            return retry if decided.wake_at is None else min(retry, decided.wake_at)
        return decided.wake_at

    def run(self, stop: threading.Event) -> None:
        """Passes until ``stop`` is set (and ``wake`` called). A pass that raises is logged and repeated later."""
        crashes = 0
        self._recorded = {}  # Another control plane may have led meanwhile, and have written otherwise.
        while not stop.is_set():
            # Cleared before the facts are read: a wake during the pass leads to another one.
            self._event.clear()
            try:
                wake_at = self.run_once()
                crashes = 0
            except Exception:
                crashes += 1
                log.exception("a pass failed; the next one starts from the facts again")
                wake_at = self._clock() + backoff_s(crashes)
            pause = RESYNC_S if wake_at is None else min(max(wake_at - self._clock(), 0.0), RESYNC_S)
            self._event.wait(pause)

    def _publish(self, table: RoutingTable, above: int) -> None:
        if table.max_body_bytes != self._max_body_bytes:
            table = replace(table, max_body_bytes=self._max_body_bytes)
        self._feed.published(self._store.publish(table, above=above))

    def _act(self, decided: Plan) -> dict[Ref, Error]:
        """Carry out starts and stops; what was refused, by deployment."""
        refused: dict[Ref, Error] = {}
        for start in decided.start:
            self._require_lead()
            workload = start.workload
            try:
                log.info("start %s-%d-%d", workload.name, start.slot, start.attempt)
                self._runtime.start(
                    workload, start.slot, start.attempt, start.readiness, start.liveness, start.request_timeout_s
                )
            except Error as error:
                log.warning("start of %s refused: %s", workload.name, error.message)
                refused[Ref(workload.endpoint, workload.deployment)] = error
        for stop in decided.stop:
            self._require_lead()
            log.info("stop %s: %s", stop.instance_id, stop.why)
            try:
                self._runtime.stop(stop.instance_id, stop.grace_s)
            except Error as error:
                # A cluster that does not answer must not keep the others waiting; the next pass asks again.
                log.warning("stop of %s refused: %s", stop.instance_id, error.message)
        for instance_id in decided.forget:
            self._require_lead()
            self._runtime.forget(instance_id)
        return refused

    def _require_lead(self) -> None:
        if not self._may_act():
            raise Error("Conflict", "this control plane does not lead any more; the rest of the pass is another's")

    def _record(self, world: World, decided: Plan, refused: dict[Ref, Error], now: float) -> None:
        """Write the statuses that are news, or that the store may not have yet for the newest generation."""
        statuses = dict(decided.statuses)
        generations = {Ref(d.endpoint, d.name): d.generation for d in world.deployments} if refused else {}
        for ref, error in refused.items():
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
