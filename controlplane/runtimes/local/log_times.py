"""When the lines of an instance's log were written.

Decides which lines may be younger than a given time. Must not know files. Triton begins its lines
with their time in UTC, in whole seconds; what a model prints has none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timezone

#: ``2026-11-22T22:10:48Z I 4711 server.cc:10] ...``
_STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)Z ")


def younger(lines: Sequence[str], since: float, written_at: float) -> list[str]:
    """The lines from the first one that may have been written at ``since`` or later.

    A line without a time was written before the next one with a time, so that one's counts; after
    the last one ``written_at`` does, when the log was last written to. So a line may be shown that
    is a little older, and none is left out that is not. Times: seconds since the epoch.
    """
    begin, latest = len(lines), written_at
    for number in range(len(lines) - 1, -1, -1):
        latest = _written_until(lines[number]) or latest
        if latest < since:
            break
        begin = number
    return list(lines[begin:])


def _written_until(line: str) -> float | None:
    """The end of the second at the beginning of a line; None without one."""
    match = _STAMP.match(line)
    if match is None:
        return None
    try:
        return datetime.fromisoformat(match[1]).replace(tzinfo=timezone.utc).timestamp() + 1.0
    except ValueError:
        return None
