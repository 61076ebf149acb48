"""Logs of instances as they grow, out of answers that each hold the last lines of all of them.

Decides which lines of an answer are news, and when a heading is repeated. Must not know where answers come from.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

#: Seconds between two looks.
POLL_S = 1.0
#: ``==> <instance>, <phase>[, ...] <==``
_HEADING = re.compile(r"^==> (?P<instance>[^,\s]+)(?:, .*)? <==$")


class Following:
    """Remembers what was said of each instance."""

    def __init__(self) -> None:
        self._said: dict[str, list[str]] = {}
        self._last: str | None = None

    def news(self, text: str) -> list[str]:
        """The lines that have come since the last call, under the headings of their instances."""
        found = []
        for instance, heading, lines in _sections(text):
            added = _added(self._said.get(instance, []), lines)
            if heading and (added or instance not in self._said) and instance != self._last:
                found.append(heading)
                self._last = instance
            self._said[instance] = lines
            found += added
        return found


def follow(fetch: Callable[[], str], pause: Callable[[float], None] = time.sleep) -> Iterator[str]:
    """Lines for ever; ``fetch`` gives the text of the last lines. Raises what ``fetch`` raises."""
    following = Following()
    while True:
        yield from following.news(fetch())
        pause(POLL_S)


def _sections(text: str) -> list[tuple[str, str, list[str]]]:
    """(instance, heading, lines); what stands before the first heading is of nobody."""
    sections: list[tuple[str, str, list[str]]] = []
    for line in text.splitlines():
        if match := _HEADING.match(line):
            sections.append((match["instance"], line, []))
        elif sections:
            sections[-1][2].append(line)
        else:
            sections.append(("", "", [line]))
    return sections


def _added(before: list[str], now: list[str]) -> list[str]:
    """What of ``now`` is not the end of ``before``: an answer begins later when there is more than it may hold."""
    for length in range(min(len(before), len(now)), 0, -1):
        if before[-length:] == now[:length]:
            return now[length:]
    return now
