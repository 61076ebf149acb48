"""Rules chosen by their numbers.

Decides which numbers there are. Must not know rules.
"""

from __future__ import annotations

from collections.abc import Sequence

from amphitrite.schemas.errors import Error


def chosen(given: Sequence[str], count: int) -> set[int]:
    """The numbers of ``--index``; ``*`` stands for all. Raises Error UsageError."""
    if "*" in given:
        return set(range(count))
    wrong = [text for text in given if not text.isdecimal() or int(text) >= count]
    if wrong:
        there = f"the rules have the numbers 0 to {count - 1}" if count else "there are no rules"
        raise Error("UsageError", f"--index: there is no rule {', '.join(wrong)}; {there}", target="--index")
    return {int(text) for text in given}
