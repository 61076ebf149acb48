"""Follows the logs of instances. Each answer of the server holds the last lines of every log.

Decides which lines of an answer are new, when a heading is repeated, and which log is the newest.
Must not know where answers come from.
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

    def begin(self, whole: str, young: str) -> list[str]:
        """The lines of ``young`` below their headings. ``whole``: the same logs with their older
        lines, read just before, so that no later call takes an older line for a new one."""
        self._previous = {instance: lines for instance, _, lines in _sections(whole)}
        result = []
        for instance, heading, lines in _sections(young):
            if heading:
                result.append(heading)
                self._last_instance = instance
            known = self._previous.get(instance, [])
            self._previous[instance] = known + _lines_after(known, lines)
            result += lines
        return result


def newest(text: str) -> tuple[str, str, int]:
    """(heading, text, number of other logs) of the last log in ``text``, which is the newest.

    The heading has no marks around it; it is empty if there is none.
    """
    sections = [section for section in _sections(text) if section[1]] or _sections(text)
    if not sections:
        return "", "", 0
    _, heading, lines = sections[-1]
    return heading[4:-4], "".join(f"{line}\n" for line in lines), len(sections) - 1


def which(heading: str, others: int, *, previous: bool) -> str:
    """The line that says which log is printed, and how to see the others.

    ``previous``: the log of an attempt before was asked for.
    """
    # What starts may be the next attempt after one that failed, whose log says why.
    before = "--previous prints the attempt before, " if ", starting" in heading and not previous else ""
    return f"{heading}: one of {others + 1} logs; {before}--all-instances prints all"


def heading_line(heading: str) -> str:
    """The heading with its marks."""
    return f"==> {heading} <=="


def is_heading(line: str) -> bool:
    """Whether the line is a heading."""
    return _HEADING.match(line) is not None


def follow(
    fetch: Callable[[], str], young: Callable[[], str] | None = None, pause: Callable[[float], None] = time.sleep
) -> Iterator[str]:
    """Yields lines without end; ``fetch`` returns the text of the last lines.

    ``young``: returns those to begin with, where not all are wanted. Raises what they raise.
    """
    follower = LogFollower()
    if young is not None:
        whole = fetch()
        yield from follower.begin(whole, young())
        pause(POLL_S)
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
