"""Durations, shares and latencies as people write them: ``60s``, ``1%``, ``80ms``.

Decides the forms and their bounds. Must not know what a value is for.
"""

from __future__ import annotations

import re

_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)(ms|s|m|h)")
_PERCENT = re.compile(r"(\d{1,4}(?:\.\d{1,6})?) ?%")


def seconds(text: object) -> float:
    """``90s`` -> 90.0. Raises ValueError, with a sentence."""
    match = _DURATION.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"must be a duration such as 60s, 10m or 80ms; found {str(text)[:40]!r}")
    return float(match[1]) * _UNITS_S[match[2]]


def share(text: object) -> float:
    """``1%`` -> 0.01. Raises ValueError, with a sentence."""
    match = _PERCENT.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"must be a percentage such as 1%; found {str(text)[:40]!r}")
    return float(match[1]) / 100


def duration_text(value: float) -> str:
    """``90.0`` -> ``90s``; whole minutes and hours as such; below a second in ms."""
    if value < 1:
        return f"{value * 1000:g}ms" if value else "0s"
    for unit in ("h", "m"):
        if value % _UNITS_S[unit] == 0 and value >= 2 * _UNITS_S[unit]:
            return f"{value / _UNITS_S[unit]:g}{unit}"
    return f"{value:g}s"


def share_text(value: float) -> str:
    return f"{100 * value:g}%"
