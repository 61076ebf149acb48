"""Time zones as rows.

Decides which offset is shown: that of the standard time. Must not know schedules.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from amphitrite.schemas.errors import Error
from amphitrite.schemas.windows_time_zones import WINDOWS_TIME_ZONES

#: Both halves of a year: summer time is in one of them.
_TIMES = (datetime(2026, 1, 1), datetime(2026, 7, 1))


def rows(search: str | None, offset: str | None) -> list[dict[str, str]]:
    """Sorted by offset and name. Raises Error UsageError."""
    wanted = None if offset is None else _parsed(offset)
    found = [
        (shift, name)
        for name, zone in WINDOWS_TIME_ZONES.items()
        for shift in [min(_offset(zone, moment) for moment in _TIMES)]
        if (search is None or search.lower() in name.lower()) and wanted in (None, shift)
    ]
    return [{"name": name, "offset": _written(shift)} for shift, name in sorted(found)]


def _offset(zone: str, moment: datetime) -> timedelta:
    return ZoneInfo(zone).utcoffset(moment) or timedelta(0)


def _parsed(text: str) -> timedelta:
    match = re.fullmatch(r"([+-]?)(\d{1,2})(?::(\d{2}))?", text.strip())
    if match is None or int(match[2]) > 14:
        raise Error("UsageError", f"--offset is {text[:40]!r}; write -12 to +14, such as +05:30", target="--offset")
    shift = timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
    return -shift if match[1] == "-" else shift


def _written(shift: timedelta) -> str:
    minutes = int(abs(shift).total_seconds() // 60)
    return f"{'-' if shift < timedelta(0) else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
