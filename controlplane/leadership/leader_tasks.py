"""What the control plane that leads does, from the beginning of its term to the end.

Decides that all of it begins together and has ended before anybody else begins. Must not know how one comes to lead.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from amphitrite.controlplane.reconciliation.reconciler import Reconciler

#: Work that goes on until the event is set.
Work = Callable[[threading.Event], None]


class LeadersDuties:
    """Reconciling, and ``besides`` that whatever else one of several control planes does. ``since``: when the term
    began (seconds since the epoch), None outside of one."""

    def __init__(self, reconciler: Reconciler, besides: Sequence[tuple[str, Work]]) -> None:
        self._reconciler, self._besides = reconciler, tuple(besides)
        self.since: float | None = None

    def __call__(self, term: threading.Event) -> None:
        """Until ``term`` is set and all of it has ended."""
        self.since = time.time()
        try:
            works = [("reconciler", self._reconciler.run), *self._besides]
            threads = [threading.Thread(target=work, args=(term,), name=name, daemon=True) for name, work in works]
            for thread in threads:
                thread.start()
            term.wait()
            self._reconciler.wake()
            for thread in threads:
                thread.join()
        finally:
            self.since = None
