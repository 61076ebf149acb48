"""What a long command shows on stderr while it runs.

Decides how progress looks. On a terminal: one line that is rewritten in place, with a bar while
bytes move. Elsewhere: one line for each change of phase, once a second has passed, so that short
commands are silent. In both: lines that stay, for troubles and for the outcome. Must not know what
the command waits for.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Literal

from amphitrite.cli.terminal import transfer_line
from amphitrite.cli.terminal.durations import elapsed
from amphitrite.cli.terminal.transfer_line import Transfer

#: live: a terminal that understands escape codes. lines: anything else. silent: print nothing.
Mode = Literal["live", "lines", "silent"]

_REDRAW_S = 0.1
#: Without a terminal nothing is printed before this time, nor about transfers of fewer bytes.
SILENT_S = 1.0
SILENT_BYTES = 8 * 1024**2
#: Without a terminal a transfer is reported again after this time.
_REPEAT_S = 10.0


class Progress:
    """``with progress: ...``. ``phase`` and ``transfer`` change the text, ``tell`` and ``done``
    print lines that stay.

    ``subject``: such as ``deployment/pictures/blue``. ``clock``: seconds, from any start.
    """

    def __init__(self, subject: str, *, mode: Mode, clock: Callable[[], float] = time.monotonic) -> None:
        self._subject, self._mode, self._clock = subject, mode, clock
        self._phase = ""
        self._transfer: Transfer | None = None
        self._told: set[str] = set()
        self._started = clock()
        self._printed = ""
        self._printed_at = self._started
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Progress:
        work = {"live": self._redraw, "lines": self._first_line}.get(self._mode)
        if work is not None:
            self._thread = threading.Thread(target=work, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
        if self._mode == "live":
            self._write("\r\x1b[K")

    def phase(self, text: str) -> None:
        """Set the current phase, in a few words."""
        with self._lock:
            self._phase, self._transfer = text, None
        self._line()

    def transfer(self, action: str, done: int, total: int) -> None:
        """Set the current phase: ``done`` of ``total`` bytes. ``action``: such as ``uploading``."""
        with self._lock:
            now = self._clock()
            started = now if self._transfer is None or self._transfer.action != action else self._transfer.started
            self._transfer = Transfer(action, done, total, started, now)
            self._phase = action
        self._line()

    @property
    def is_drawing(self) -> bool:
        """Whether a line is rewritten now, so that other lines must not be printed into it."""
        return self._mode == "live" and self._thread is not None and not self._stop.is_set()

    def note(self, text: str) -> None:
        """Print a line about something else above the one that is rewritten."""
        with self._lock:
            self._write_line(text)

    def tell(self, text: str) -> None:
        """Print a line that stays; once, however often it is told."""
        with self._lock:
            if self._mode == "silent" or text in self._told:
                return
            self._told.add(text)
            self._write_line(f"{self._subject}: {text}")

    def done(self, outcome: str) -> None:
        """Print the final line, such as ``endpoint/pictures created in 4.2 s``.

        Without a terminal, only after another line.
        """
        with self._lock:
            if self._mode == "live" or (self._mode == "lines" and (self._printed or self._told)):
                self._write_line(f"{self._subject} {outcome} in {self._elapsed()}")

    def _elapsed(self) -> str:
        return elapsed(self._clock() - self._started)

    # -- on a terminal -----------------------------------------------------------------------------
    def _redraw(self) -> None:
        while not self._stop.wait(_REDRAW_S):
            with self._lock:
                self._write(f"\r\x1b[K{self._live_text(shutil.get_terminal_size().columns - 1)}")

    def _live_text(self, width: int) -> str:
        tail = f" ({self._elapsed()})"
        if self._transfer is not None:
            return transfer_line.with_bar(f"{self._subject}: ", self._transfer, tail, width)
        text = ": ".join(part for part in (self._subject, self._phase) if part)
        return f"{_cut(text, width - len(tail))}{tail}"

    # -- elsewhere ---------------------------------------------------------------------------------
    def _first_line(self) -> None:
        """A phase may begin before anything is printed, and last."""
        if not self._stop.wait(SILENT_S):
            self._line()

    def _line(self) -> None:
        with self._lock:
            now = self._clock()
            if self._mode != "lines" or not self._phase or now - self._started < SILENT_S:
                return
            text = self._phase
            if self._transfer is not None:
                if self._transfer.total < SILENT_BYTES:
                    return
                text = f"{text} {transfer_line.facts(self._transfer)}"
            if self._phase != self._printed or (self._transfer and now - self._printed_at >= _REPEAT_S):
                self._printed, self._printed_at = self._phase, now
                self._write_line(f"{self._subject}: {text} ({self._elapsed()})")

    def _write_line(self, text: str) -> None:
        """A line that stays, in place of the one that is rewritten."""
        erase = "\r\x1b[K" if self._mode == "live" else ""
        self._write(f"{erase}{text}\n")

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


def _cut(text: str, width: int) -> str:
    """At most ``width`` characters of the text: whole words and ``...`` where it is longer."""
    if len(text) <= width:
        return text
    head = text[: max(0, width - 3)]
    return f"{head.rpartition(' ')[0] or head}..."[: max(0, width)]
