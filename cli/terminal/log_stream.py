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


class LogFollower:
    """Remembers the last lines of each instance."""

    def __init__(self) -> None:
        self._previous: dict[str, list[str]] = {}
        self._last_instance: str | None = None

    def new_lines(self, text: str) -> list[str]:
        """The lines added since the last call, below the headings of their instances."""
        result = []
        for instance, heading, lines in _sections(text):
            new = _lines_after(self._previous.get(instance, []), lines)
            if heading and (new or instance not in self._previous) and instance != self._last_instance:
                result.append(heading)
                self._last_instance = instance
            self._previous[instance] = lines
            result += new
        return result


def follow(fetch: Callable[[], str], pause: Callable[[float], None] = time.sleep) -> Iterator[str]:
    """Yields lines without end; ``fetch`` returns the text of the last lines.

    Raises what ``fetch`` raises.
    """
    follower = LogFollower()
    while True:
        yield from follower.new_lines(fetch())
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


def _lines_after(before: list[str], now: list[str]) -> list[str]:
    """The lines of ``now`` after those that end ``before``.

    The first lines of ``before`` may be missing in ``now``, because an answer has a maximum number
    of lines.
    """
    for length in range(min(len(before), len(now)), 0, -1):
        if before[-length:] == now[:length]:
            return now[length:]
    return now
