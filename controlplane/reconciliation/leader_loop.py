"""A loop of passes that only the leader makes, beside the reconciler's.

Decides when a pass begins: when it is due, when the loop is woken, and after a failed pass. Must
not know what a pass does. A pass writes only through methods of the store that another leader's
term refuses.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from amphitrite.controlplane.core.planning.rollout import backoff_s
from amphitrite.controlplane.store.state.leader_term import former_leader
from amphitrite.schemas.errors import Error

log = logging.getLogger(__name__)

#: The longest pause between passes. It finds changes without an event, such as those of others.
RESYNC_S = 5.0


def require_lead(may_act: Callable[[], bool]) -> None:
    """Raises Error Conflict unless ``may_act``: whether this control plane still leads."""
    if not may_act():
        raise former_leader()


class LeaderLoop:
    """``run`` is a thread of its own. ``wake`` is safe from any thread.

    ``make_pass``: gets the time (seconds since the epoch), and returns when the next pass is due;
    None if only ``wake`` and RESYNC_S start it. ``begin``: called at the start of each term.
    """

    def __init__(
        self,
        name: str,
        make_pass: Callable[[float], float | None],
        clock: Callable[[], float],
        begin: Callable[[], None] = lambda: None,
    ) -> None:
        self.name = name
        self._make_pass, self._clock, self._begin = make_pass, clock, begin
        self._event = threading.Event()

    def wake(self) -> None:
        """Starts a pass now."""
        self._event.set()

    def run(self, stop: threading.Event) -> None:
        """Makes passes until ``stop`` is set and ``wake`` is called."""
        failures = 0
        self._begin()
        while not stop.is_set():
            # Cleared before the facts are read, so that a wake during the pass starts another one.
            self._event.clear()
            try:
                due, failures = self._make_pass(self._clock()), 0
            except Exception as exc:
                failures += 1
                due = self._clock() + backoff_s(failures)
                expected = isinstance(exc, Error) and exc.code in ("Conflict", "RuntimeUnavailable")
                log.log(logging.WARNING if expected else logging.ERROR, "%s: the pass failed", self.name, exc_info=exc)
            pause = RESYNC_S if due is None else min(max(due - self._clock(), 0.0), RESYNC_S)
            self._event.wait(pause)
