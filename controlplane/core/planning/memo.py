"""Results of the previous pass, for what has not changed since.

Decides that a result is reused while its inputs are equal, so only pure functions may be called
through it. Must not know what they compute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")


class Memory:
    """The memory of one loop of passes. It belongs to one thread."""

    def __init__(self) -> None:
        self._last: dict[object, tuple[tuple[object, ...], Any]] = {}
        self._now: dict[object, tuple[tuple[object, ...], Any]] = {}

    def reuse(self, name: object, sources: tuple[object, ...], make: Callable[[], Result]) -> Result:
        """The result of ``make``, or the previous one if ``sources`` are equal.

        ``make`` must depend on ``sources`` alone. ``name``: identifies the result within a pass.
        """
        entry = self._last.get(name)
        if entry is None or entry[0] != sources:
            entry = sources, make()
        self._now[name] = entry
        result: Result = entry[1]
        return result

    def end_pass(self) -> None:
        """Ends the pass: results that it did not ask for are dropped."""
        self._last, self._now = self._now, {}
