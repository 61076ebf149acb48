"""Ages on a command line: ``--since 10m``.

Decides their form, which is that of kubectl. Must not know what is so old.
"""

from __future__ import annotations

import re

from amphitrite.schemas.errors import Error

_UNITS_S = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_AGE = re.compile(r"(?:\d{1,9}[dhms])+")


def iso_duration(text: str) -> str:
    """``1d10m`` -> ``P1DT10M``, the form of Azure Monitor; any other text as it is."""
    if not _AGE.fullmatch(text):
        return text
    parts = [f"{number}{unit.upper()}" for number, unit in re.findall(r"(\d+)([dhms])", text)]
    days = "".join(part for part in parts if part.endswith("D"))
    times = "".join(part for part in parts if not part.endswith("D"))
    return f"P{days}" + (f"T{times}" if times else "")


def seconds(option: str, text: str | None) -> int | None:
    """``1h30m`` -> 5400; None for None. Raises Error UsageError for anything else, and for 0."""
    if text is None:
        return None
    parts = re.findall(r"(\d+)([dhms])", text) if _AGE.fullmatch(text) else []
    total = sum(int(number) * _UNITS_S[unit] for number, unit in parts)
    if total == 0:
        message = f"{option}: found `{text}`; allowed: a time such as 30s, 10m, 2h, 1d or 1h30m"
        raise Error("UsageError", message, target=option)
    return total
