"""Ctrl-C while a change is under way: what goes on, how to follow it, how to undo it.

Decides the text on stderr, and that it depends on whether the control plane had accepted the
change. Must not know what a change is. The exit code is ``main``'s.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

Answer = TypeVar("Answer")


class Explained(KeyboardInterrupt):
    """A Ctrl-C about which everything is said."""


@dataclass(slots=True)
class Change:
    """A change that the user may interrupt.

    ``going_on``: what the control plane does once it has accepted the change, such as ``creating
    endpoint pictures``. ``show``, ``follow``, ``undo``: commands; an empty one is not printed.
    """

    going_on: str
    show: str
    follow: str
    undo: str
    sent: bool = False
    accepted: bool = False

    def sending(self, send: Callable[[], Answer]) -> Callable[[], Answer]:
        """``send``, after which the change counts as accepted."""

        def tracked() -> Answer:
            self.sent = True
            answer = send()
            self.accepted = True
            return answer

        return tracked


@contextmanager
def explained(change: Change) -> Iterator[Change]:
    """Explains a Ctrl-C inside, and raises it again."""
    try:
        yield change
    except KeyboardInterrupt:
        raise reported(*_lines(change)) from None


@contextmanager
def ending_the_line() -> Iterator[None]:
    """After a Ctrl-C inside, of which nothing was said, begins a line: the terminal has written ^C
    where the cursor was, and the shell's prompt comes next."""
    try:
        yield
    except KeyboardInterrupt as exc:
        if sys.stderr.isatty() and not isinstance(exc, Explained):
            sys.stderr.write("\n")
        raise


def reported(first: str, *hints: str) -> Explained:
    """Prints what was interrupted. Like an error, it is printed with ``--only-show-errors`` too.

    Returns what to raise.
    """
    sys.stderr.write("".join([f"interrupted: {first}\n", *(f"hint: {hint}\n" for hint in hints if hint)]))
    sys.stderr.flush()
    return Explained()


def _lines(change: Change) -> Sequence[str]:
    if change.accepted:
        follow = f"follow it with `{change.follow}`, or repeat the command" if change.follow else ""
        return f"the control plane goes on {change.going_on}", follow, _undo(change)
    if change.sent:
        seen = f"see it with `{change.show}`; repeating the command is safe"
        return f"the control plane may be {change.going_on}: the answer had not arrived", seen, _undo(change)
    return (f"the control plane is not {change.going_on}: the request was not sent",)


def _undo(change: Change) -> str:
    return f"undo it with `{change.undo}`" if change.undo else ""
