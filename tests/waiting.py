"""Waits for a condition with a deadline.

Decides how often is asked and how a wait in vain is told. Must not know what is waited for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
DEADLINE_S = 180.0
#: The first pause, and the last: what somebody waits for needs the cores.
_FIRST_S, _LAST_S = 0.01, 0.25


def wait_until(
    condition: Callable[[], T | None],
    what: str,
    deadline_s: float = DEADLINE_S,
    *,
    detail: Callable[[], str] = str,
    pause_at_most_s: float = _LAST_S,
) -> T:
    """The first truthy answer of ``condition``; fails with ``what`` and ``detail()`` past the
    deadline."""
    pause, every_s = threading.Event(), _FIRST_S
    end = time.monotonic() + deadline_s
    while True:
        if answer := condition():
            return answer
        if time.monotonic() >= end:
            raise AssertionError(f"after {deadline_s:.0f} s still not: {what}\n{detail()}".rstrip())
        pause.wait(every_s)
        every_s = min(pause_at_most_s, every_s * 1.3)
