"""A task that must not end by an unexpected failure.

Decides that it is started again, after a pause. Must not know what it does, nor where failures are
logged. An exception that nobody catches ends a thread, and nothing else notices.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

#: Seconds before a task that has failed starts again.
PAUSE_S = 1.0


def keep_running(task: Callable[[], object], stop: threading.Event, failed: Callable[[Exception], object]) -> None:
    """Runs ``task`` until it returns. After each exception calls ``failed`` and starts it again,
    unless ``stop`` is set."""
    while True:
        try:
            task()
            return
        except Exception as exc:
            failed(exc)
            if stop.wait(PAUSE_S):
                return
