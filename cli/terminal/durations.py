"""Lengths of time as short text for people.

Decides the units of an age (those of kubectl) and of a time that a command took. Must not know a
clock.
"""

from __future__ import annotations

from datetime import datetime

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def age(seconds: float) -> str:
    """``45s``, ``3m10s``, ``25m``, ``4h5m``, ``30h``, ``3d2h``, ``12d``, ``3y``.

    The second unit is shown while the first one is small. A negative age, of clocks that differ, is
    ``0s``.
    """
    whole = max(0, int(seconds))
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    if whole < 3 * _HOUR:
        return _two(whole, _MINUTE, "m", 1, "s", below=10)
    if whole < 2 * _DAY:
        return _two(whole, _HOUR, "h", _MINUTE, "m", below=8)
    if whole < 730 * _DAY:
        return _two(whole, _DAY, "d", _HOUR, "h", below=8)
    return f"{whole // (365 * _DAY)}y"


def _two(seconds: int, unit: int, name: str, smaller: int, smaller_name: str, *, below: int) -> str:
    """``seconds`` in ``unit``; with the smaller unit if it is not 0 and the first is small."""
    count, rest = seconds // unit, seconds % unit // smaller
    return f"{count}{name}{rest}{smaller_name}" if count < below and rest else f"{count}{name}"


def elapsed(seconds: float) -> str:
    """``4.2 s``, ``1 min 5 s``."""
    return f"{seconds:.1f} s" if seconds < _MINUTE else f"{int(seconds // _MINUTE)} min {int(seconds % _MINUTE)} s"


def remaining(seconds: float) -> str:
    """``5 s``, ``1 min 5 s``, ``2 h 3 min``: whole seconds, at least 1."""
    whole = max(1, round(seconds))
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"


def epoch(text: str) -> float:
    """Seconds since the epoch of an ISO 8601 time with offset.

    Azure writes the offset with and without a colon.
    """
    if text[-5:-4] in ("+", "-"):
        text = f"{text[:-2]}:{text[-2:]}"
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
