"""The progress line of a long command: its subject, its phase, the time so far.

Decides how progress looks on a terminal: one line on stderr that is rewritten in place, and a final
one that stays. Prints nothing if stderr is not a terminal. Must not know what the command waits
for.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from types import TracebackType

_REDRAW_S = 0.1


class Progress:
    """``with progress: ...``; ``phase`` changes the text, ``done`` prints the final line."""

    def __init__(self, subject: str, *, live: bool) -> None:
        self._what = subject
        self._live = live
        self._phase = ""
        self._started = time.monotonic()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Progress:
        if self._live:
            self._thread = threading.Thread(target=self._redraw, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._write("\r\x1b[K")

    def phase(self, text: str) -> None:
        """Set the current phase, in a few words."""
        self._phase = text

    def done(self, outcome: str) -> None:
        """Print the final line, such as ``blue: Succeeded in 4.2 s``."""
        if self._live:
            self._write(f"\r\x1b[K{self._what}: {outcome} in {self._elapsed()}\n")

    def _elapsed(self) -> str:
        seconds = time.monotonic() - self._started
        return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds // 60)} min {int(seconds % 60)} s"

    def _redraw(self) -> None:
        while not self._stop.wait(_REDRAW_S):
            width = shutil.get_terminal_size().columns
            text = ": ".join(part for part in (self._what, self._phase) if part)
            tail = f" ({self._elapsed()})"
            self._write(f"\r\x1b[K{text[: max(0, width - len(tail) - 1)]}{tail}")

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
