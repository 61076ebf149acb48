"""Short pauses in a process that holds a table of a thousand endpoints.

Decides how soon a thread that computes yields to one that answers, and which objects the garbage
collector visits. A full collection visits every live object, which takes a third of a second for
such a table, and each waiting request waits for it. A table has no reference cycles, so what has
survived a long collection is frozen (``gc.freeze``). Now and then it is unfrozen for one
collection, since an object that was in use then may have become garbage. Must not know what the
process does.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

#: New objects between two collections. A pass over a thousand endpoints makes some twenty thousand,
#: most of which stay.
_THRESHOLD = 10_000
#: How long a thread computes before it yields, in seconds; Python's default is ten times that. A
#: response needs a turn for each of its parts, and a pass of 50 ms came between any two of them.
_SWITCH_INTERVAL_S = 0.0005
#: A collection that takes this much CPU time, in seconds, has met many objects that stay.
_LONG_COLLECTION_S = 0.02
_THAW_EVERY_S = 3600.0


class CollectionCallback:
    """A callback for ``gc.callbacks``. ``cpu_time``: of this thread; ``clock``: monotonic. Both in
    seconds."""

    def __init__(
        self, cpu_time: Callable[[], float] = time.thread_time, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._cpu_time, self._clock = cpu_time, clock
        self._began, self._thawed_at = 0.0, clock()

    def __call__(self, phase: str, info: Mapping[str, Any]) -> None:
        if info["generation"] != 2:
            return
        if phase == "start":
            self._began = self._cpu_time()
            if self._clock() - self._thawed_at >= _THAW_EVERY_S:
                self._thawed_at = self._clock()
                gc.unfreeze()
        elif self._cpu_time() - self._began >= _LONG_COLLECTION_S:
            gc.freeze()


def disable() -> None:
    """Collect no garbage in this process until :func:`limit_pauses`: what it makes now stays."""
    gc.disable()


def limit_pauses() -> None:
    """Limit pauses in this process from now on. All present objects are frozen."""
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    gc.freeze()
    gc.set_threshold(_THRESHOLD, *gc.get_threshold()[1:])
    gc.callbacks.append(CollectionCallback())
    gc.enable()
