"""The loop that moves the traffic of rollouts.

Decides the order of one pass: read counters and facts, ask the rules, and store the rollout
together with its traffic. Must not know the rules (``core.rollouts``). A pass begins from what is
stored, so another leader goes on with the same values.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable

from amphitrite.controlplane.agents.agent_registry import Agents
from amphitrite.controlplane.core.history import traffic_history
from amphitrite.controlplane.core.history.revisions import Author
from amphitrite.controlplane.core.planning.rollout import REPLACES
from amphitrite.controlplane.core.rollouts import progress
from amphitrite.controlplane.core.rollouts.progress import Facts
from amphitrite.controlplane.core.rollouts.request_counts import Readings
from amphitrite.controlplane.core.rollouts.traffic_rollout import Rollout
from amphitrite.controlplane.reconciliation import rollout_requests
from amphitrite.controlplane.reconciliation.leader_loop import require_lead
from amphitrite.controlplane.store.reports.metric_minutes import StoredMetrics
from amphitrite.controlplane.store.state.store import Record, Store
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key

log = logging.getLogger(__name__)

#: While there are rollouts, how often their counters are read. Agents report them every 5 s.
PERIOD_S = 1.0


class RolloutDriver:
    """``make_pass`` is the pass of a ``LeaderLoop``. ``wake``: called after a change of traffic.
    ``may_act``: whether this control plane still leads."""

    def __init__(
        self,
        store: Store,
        metrics: StoredMetrics,
        agents: Agents,
        wake: Callable[[], None],
        may_act: Callable[[], bool] = lambda: True,
    ) -> None:
        self._store, self._metrics, self._agents = store, metrics, agents
        self._wake, self._may_act = wake, may_act

    def make_pass(self, now: float) -> float | None:
        """Returns when the next pass is due; None without rollouts. Raises Error Conflict if this
        control plane no longer leads."""
        rollouts = self._store.active_rollouts()
        if not rollouts:
            return None
        totals = self._metrics.newest([report.id for report in self._agents.live(now)])
        for rollout in rollouts:
            require_lead(self._may_act)
            try:
                self._advance(rollout, rollout_requests.readings(totals, rollout.endpoint, rollout.plan), now)
            except Error as error:
                # One rollout must not delay the others. The next pass reads everything anew.
                log.warning("rollout of %s: %s", rollout.endpoint, error.message)
        return now + PERIOD_S

    def _advance(self, rollout: Rollout, found: Readings, now: float) -> None:
        one = progress.advance(rollout, found, self._facts(rollout), now)
        if one.rollout == rollout:
            return
        by = Author(rollout.by, one.rollout.reason, "rollout")
        self._store.advance_rollout(rollout, one.rollout, one.traffic, by=by, now=now)
        if one.traffic is not None or one.rollout.state != rollout.state:
            log.info("rollout of %s: %s: %s", rollout.endpoint, one.rollout.state, one.rollout.reason)
        if one.traffic is not None:
            self._wake()

    def _facts(self, rollout: Rollout) -> Facts:
        """Raises Error ResourceNotFound if the endpoint is gone; its rollouts go with it."""
        endpoint = self._store.get_endpoint(rollout.endpoint)
        deployments = [one for one in self._store.list_deployments(rollout.endpoint) if not one.deleting]
        judged = next((one for one in deployments if one.ref.deployment == key(rollout.plan.to)), None)
        return Facts(
            traffic=traffic_history.traffic_of(endpoint.document),
            in_force=_is_done(endpoint),
            deployments=[one.name for one in deployments],
            ready=judged is not None and _is_done(judged),
            version="" if judged is None else _version(judged),
            is_leaving=endpoint.deleting,
        )


def _is_done(record: Record) -> bool:
    return record.status.state == "Succeeded" and record.status.observed_generation >= record.generation


def _version(record: Record) -> str:
    """Differs when the deployment gets other instances: another model, another environment."""
    what = {name: record.document.get(name) for name in sorted(REPLACES)}
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]
