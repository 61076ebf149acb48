"""The threads of a control plane.

Decides that they are stopped and joined in reverse order of their start, and that none is lost
unseen: a task that fails is logged and started again, and the process ends with a task that cannot
be. Must not know what they do.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import ExitStack

from amphitrite.dataplane.machine.kept_tasks import keep_running

log = logging.getLogger(__name__)


class Threads:
    """``stack``: ends them. ``stop``: set when the control plane is to end. ``join_s``: how long
    each may take to end, in seconds."""

    def __init__(self, stack: ExitStack, stop: threading.Event, join_s: float) -> None:
        self._stack, self._stop, self._join_s = stack, stop, join_s
        #: The name of the indispensable thread that has ended by itself.
        self.lost: str | None = None

    def start(self, name: str, target: Callable[[], None], ask_to_end: Callable[[], None]) -> None:
        """A task that is started again after a failure."""
        self._start(name, lambda: keep_running(target, self._stop, lambda _: _log_failure(name)), ask_to_end)

    def start_once(self, name: str, target: Callable[[], None], ask_to_end: Callable[[], None]) -> None:
        """A task without which the control plane ends. It cannot be started twice."""

        def run() -> None:
            try:
                target()
            except BaseException:  # Also SystemExit, by which a thread ends without a word.
                _log_failure(name)
            if not self._stop.is_set():
                self.lost = name
                log.critical("the thread %s has ended, so the control plane ends", name)
                self._stop.set()

        self._start(name, run, ask_to_end)

    def _start(self, name: str, run: Callable[[], None], ask_to_end: Callable[[], None]) -> None:
        thread = threading.Thread(target=run, name=name, daemon=True)

        def end() -> None:
            ask_to_end()
            thread.join(self._join_s)

        thread.start()
        self._stack.callback(end)


def _log_failure(name: str) -> None:
    log.exception("the thread %s failed", name)


def log_unhandled(arguments: threading.ExceptHookArgs) -> None:
    """For ``threading.excepthook``: the last that is heard of a thread goes to the log."""
    name = arguments.thread.name if arguments.thread is not None else "?"
    failure = arguments.exc_value
    log.critical("the thread %s ended by %s", name, arguments.exc_type.__name__, exc_info=failure)
