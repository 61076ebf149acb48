"""The tasks of the leading control plane, from the start of its term to its end.

Decides that they start together, and that all have ended before another leader's begin. Must not
know how a leader is elected.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from amphitrite.controlplane.reconciliation.reconciler import Reconciler

#: Runs until the event is set.
Work = Callable[[threading.Event], None]


class LeaderTasks:
    """Runs the reconciler and ``other_tasks``, which only one of several control planes may run.

    ``since``: when the term began, in seconds since the epoch; None outside a term.
    """

    def __init__(self, reconciler: Reconciler, other_tasks: Sequence[tuple[str, Work]]) -> None:
        self._reconciler, self._other_tasks = reconciler, tuple(other_tasks)
        self.since: float | None = None

    def __call__(self, term: threading.Event) -> None:
        """Returns after ``term`` is set and all tasks have ended."""
        self.since = time.time()
        try:
            works = [("reconciler", self._reconciler.run), *self._other_tasks]
            threads = [threading.Thread(target=work, args=(term,), name=name, daemon=True) for name, work in works]
            for thread in threads:
                thread.start()
            term.wait()
            self._reconciler.wake()
            for thread in threads:
                thread.join()
        finally:
            self.since = None
