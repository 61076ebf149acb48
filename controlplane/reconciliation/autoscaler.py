"""The loop that sets the numbers of instances of scaled deployments.

Decides the order of one pass: every scaler is asked, its changes are stored, and the reconciler
wakes. Must not know how a scaler finds a number. Each change is stored only if nobody has changed
the scale since the scaler read it, and only in this leader's term, so two leaders never scale
twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from amphitrite.controlplane.core.scaling.scales import ScaleChange
from amphitrite.controlplane.reconciliation.leader_loop import require_lead
from amphitrite.controlplane.store.state.store import Store
from amphitrite.schemas.errors import Error

log = logging.getLogger(__name__)

#: The pause before a scaler that has failed is asked again, in seconds.
RETRY_S = 5.0


@dataclass(frozen=True, slots=True)
class Proposals:
    """What a scaler wants stored now, and when to ask it again (seconds since the epoch; None: when
    woken)."""

    changes: tuple[ScaleChange, ...] = ()
    wake_at: float | None = None


class Scaler(Protocol):
    """A rule for the numbers of instances of some deployments. Called from one thread."""

    def propose(self, now: float) -> Proposals:
        """The changes that are due. It reads what it needs, and writes nothing itself."""
        ...


class Autoscaler:
    """``make_pass`` is the pass of a ``LeaderLoop``. ``wake_reconciler``: called after a change.
    ``may_act``: whether this control plane still leads."""

    def __init__(
        self,
        store: Store,
        scalers: Sequence[Scaler],
        wake_reconciler: Callable[[], None],
        may_act: Callable[[], bool] = lambda: True,
    ) -> None:
        self._store, self._scalers = store, tuple(scalers)
        self._wake_reconciler, self._may_act = wake_reconciler, may_act

    def make_pass(self, now: float) -> float | None:
        """Returns when the next pass is due. Raises Error Conflict if this control plane no longer
        leads."""
        due: list[float] = []
        for scaler in self._scalers:
            try:
                proposed = scaler.propose(now)
            except Exception:
                # What one kind of scaler cannot read must not stop the others.
                log.exception("%s: no number of instances changes", type(scaler).__name__)
                due.append(now + RETRY_S)
                continue
            if not all([self._stored(change) for change in proposed.changes]):
                due.append(now)
            if proposed.wake_at is not None:
                due.append(proposed.wake_at)
        return min(due, default=None)

    def _stored(self, change: ScaleChange) -> bool:
        """Stores it. False if somebody else has changed the scale meanwhile."""
        require_lead(self._may_act)
        try:
            stored = self._store.set_scale(change)
        except Error as error:
            if error.code != "Conflict":
                raise
            log.warning("%s", error.message)
            return False
        if stored is not None and (event := change.event) is not None:
            verb = "scale" if event.mode == "apply" else "would scale"
            log.info("%s %s/%s: %s (%s)", verb, change.ref.endpoint, change.ref.deployment, event.reason, event.by)
            if event.mode == "apply":
                self._wake_reconciler()
        return True
