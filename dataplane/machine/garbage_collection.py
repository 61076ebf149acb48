"""How long whoever waits for an answer is held up in a process that keeps a table of a thousand endpoints.

Decides how soon a thread that computes gives way to one that answers, and what the garbage collector looks at when. A
full collection visits everything that lives, a third of a second for such a table, and whoever waits for a change waits
for that. What is in a table holds no cycles and goes when nobody names it any more, so what has survived one long
collection is set aside (``gc.freeze``). It is looked at again now and then: what was in the midst of something at that
moment may have become garbage since. Must not know what the process does.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

#: New objects between two collections: a pass over a thousand endpoints makes some twenty thousand, most of which stay.
_YOUNG = 10_000
#: How long a thread computes before another gets its turn (seconds; Python's own is ten times that). An answer needs a
#: turn for each of its parts, and a pass of 50 ms lay between any two of them.
_TURN_S = 0.0005
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
    sys.setswitchinterval(_TURN_S)
    gc.freeze()
    gc.set_threshold(_YOUNG, *gc.get_threshold()[1:])
    gc.callbacks.append(Collections())
    gc.enable()
