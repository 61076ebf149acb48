"""Conversion of ISO 8601 durations in wire bodies to milliseconds or seconds in documents.

Decides which durations are exact enough to be accepted. Must not know which field a duration
belongs to. Nothing is rounded: ``PT0.5S`` is 500 ms, and a fraction of a millisecond is refused.
"""

from __future__ import annotations

import re
from fractions import Fraction

_NUMBER = r"\d{1,12}(?:[.,]\d{1,9})?"
_DURATION = re.compile(
    rf"P(?:(?P<weeks>{_NUMBER})W)?(?:(?P<days>{_NUMBER})D)?"
    rf"(?P<time>T(?:(?P<hours>{_NUMBER})H)?(?:(?P<minutes>{_NUMBER})M)?(?:(?P<seconds>{_NUMBER})S)?)?"
)
_SECONDS = {"weeks": 604_800, "days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}


def from_milliseconds(milliseconds: int) -> str:
    """``500`` -> ``PT0.5S``: always in seconds, in the shortest form."""
    whole, rest = divmod(milliseconds, 1_000)
    fraction = f".{rest:03d}".rstrip("0") if rest else ""
    return f"PT{whole}{fraction}S"


def from_seconds(seconds: int) -> str:
    """``10`` -> ``PT10S``."""
    return f"PT{seconds}S"


def to_milliseconds(text: object) -> int:
    """``PT1M0.5S`` -> ``60500``. Raises ValueError with a message for the user."""
    milliseconds = _seconds(text) * 1_000
    if milliseconds.denominator != 1:
        raise ValueError(f"must be a whole number of milliseconds; found {text!r}")
    return int(milliseconds)


def to_seconds(text: object) -> int:
    """``PT1M`` -> ``60``. Raises ValueError with a message for the user."""
    seconds = _seconds(text)
    if seconds.denominator != 1:
        raise ValueError(f"must be a whole number of seconds; found {text!r}")
    return int(seconds)


def _seconds(text: object) -> Fraction:
    match = _DURATION.fullmatch(text) if isinstance(text, str) and text.isascii() else None
    parts = {unit: match[unit] for unit in _SECONDS if match[unit]} if match else {}
    if match is None or not parts or match["time"] == "T":
        raise ValueError(f"must be an ISO 8601 duration such as PT5S; found {str(text)[:40]!r}")
    return sum((Fraction(number.replace(",", ".")) * _SECONDS[unit] for unit, number in parts.items()), Fraction())
