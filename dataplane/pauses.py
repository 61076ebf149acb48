"""How long the garbage collector holds up a process that keeps a table of a thousand endpoints.

Decides which objects it goes on looking at. A full collection visits everything that lives, a third of a second for
such a table, and whoever waits for a change waits for that. What is in a table holds no cycles and goes when nobody
names it any more, so what has survived one long collection is set aside (``gc.freeze``). It is looked at again now and
then: what was in the midst of something at that moment may have become garbage since. Must not know what the process
does.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from typing import Any

#: A collection that has taken so much of the processor has met a lot that stays (seconds).
_LONG_S = 0.02
_AGAIN_S = 3600.0


class Collections:
    """A callback for ``gc.callbacks``. ``spent``: what this thread has had of the processor; ``clock``: both in
    seconds."""

    def __init__(
        self, spent: Callable[[], float] = time.thread_time, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._spent, self._clock = spent, clock
        self._began, self._all_at = 0.0, clock()

    def __call__(self, phase: str, info: Mapping[str, Any]) -> None:
        if info["generation"] != 2:
            return
        if phase == "start":
            self._began = self._spent()
            if self._clock() - self._all_at >= _AGAIN_S:
                self._all_at = self._clock()
                gc.unfreeze()
        elif self._spent() - self._began >= _LONG_S:
            gc.freeze()


def none() -> None:
    """From now on, until :func:`keep_short`: this process makes what stays."""
    gc.disable()


def keep_short() -> None:
    """From now on, in this process. What is there already is set aside."""
    gc.freeze()
    gc.callbacks.append(Collections())
    gc.enable()
