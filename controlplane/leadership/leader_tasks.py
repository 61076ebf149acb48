"""The tasks of the leading control plane, from the start of its term to its end.

Decides that they start together, and that all have ended before another leader's begin. Must not
know how a leader is elected. A task that fails is started again in the same term.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

from amphitrite.controlplane.reconciliation.leader_loop import LeaderLoop
from amphitrite.controlplane.reconciliation.reconciler import Reconciler
from amphitrite.dataplane.machine.kept_tasks import keep_running

log = logging.getLogger(__name__)

#: Runs until the event is set.
Work = Callable[[threading.Event], None]


class LeaderTasks:
    """Runs the reconciler and ``other_tasks``, which only one of several control planes may run.

    ``loops``: tasks that wait for a wake, too. ``since``: when the term began, in seconds since the
    epoch; None outside a term.
    """

    def __init__(
        self, reconciler: Reconciler, other_tasks: Sequence[tuple[str, Work]], loops: Sequence[LeaderLoop] = ()
    ) -> None:
        self._reconciler, self._loops = reconciler, tuple(loops)
        self._other_tasks = (*other_tasks, *((loop.name, loop.run) for loop in loops))
        self.since: float | None = None

    def __call__(self, term: threading.Event) -> None:
        """Returns after ``term`` is set and all tasks have ended."""
        self.since = time.time()
        try:
            works = [("reconciler", self._reconciler.run), *self._other_tasks]
            threads = [
                threading.Thread(target=_run, args=(name, work, term), name=name, daemon=True) for name, work in works
            ]
            for thread in threads:
                thread.start()
            term.wait()
            self._reconciler.wake()
            for loop in self._loops:
                loop.wake()
            for thread in threads:
                thread.join()
        finally:
            self.since = None


def _run(name: str, work: Work, term: threading.Event) -> None:
    keep_running(lambda: work(term), term, lambda _: log.exception("the leader's task %s failed; it goes on", name))
