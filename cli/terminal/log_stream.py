"""Follows the logs of instances. Each answer of the server holds the last lines of every log.

Decides which lines of an answer are new, and when a heading is repeated. Must not know where
answers come from.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

#: Seconds between two requests.
POLL_S = 1.0
#: ``==> <instance>, <phase>[, ...] <==``
_HEADING = re.compile(r"^==> (?P<instance>[^,\s]+)(?:, .*)? <==$")


class Following:
    """Remembers the last lines of each instance."""

    def __init__(self) -> None:
        self._said: dict[str, list[str]] = {}
        self._last: str | None = None

    def news(self, text: str) -> list[str]:
        """The lines added since the last call, below the headings of their instances."""
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
    """Yields lines without end; ``fetch`` returns the text of the last lines.

    Raises what ``fetch`` raises.
    """
    following = Following()
    while True:
        yield from following.news(fetch())
        pause(POLL_S)


def _sections(text: str) -> list[tuple[str, str, list[str]]]:
    """(instance, heading, lines) of each section. Lines before the first heading have neither."""
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
    """The lines of ``now`` after those that end ``before``.

    The first lines of ``before`` may be missing in ``now``, because an answer has a maximum number
    of lines.
    """
    for length in range(min(len(before), len(now)), 0, -1):
        if before[-length:] == now[:length]:
            return now[length:]
    return now
