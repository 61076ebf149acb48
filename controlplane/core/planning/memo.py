"""Results of the last pass, for everything that has not changed since.

Decides that a result holds as long as what it was made of is equal. Pure functions alone may be asked through it. Must
not know what they decide.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")


class Memory:
    """One for each loop of passes; for one thread."""

    def __init__(self) -> None:
        self._last: dict[object, tuple[tuple[object, ...], Any]] = {}
        self._now: dict[object, tuple[tuple[object, ...], Any]] = {}

    def of(self, name: object, sources: tuple[object, ...], make: Callable[[], Result]) -> Result:
        """What ``make`` gives; it must depend on ``sources`` alone. ``name``: of the result, one for each pass."""
        known = self._last.get(name)
        if known is None or known[0] != sources:
            known = sources, make()
        self._now[name] = known
        result: Result = known[1]
        return result

    def turn(self) -> None:
        """The pass has ended: what it did not ask for is forgotten."""
        self._last, self._now = self._now, {}
