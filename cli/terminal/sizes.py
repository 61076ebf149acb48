"""Numbers of bytes as text: ``602 B``, ``1.5 kB``, ``1.8 GB``.

Decides the unit and the digits, wherever a person reads them. Must not know what has the size.
"""

from __future__ import annotations

_UNITS = ("B", "kB", "MB", "GB", "TB")


def text(size: float) -> str:
    """``1.5 kB``: powers of 1000 and one digit after the point; bytes are whole."""
    unit = _unit(size)
    return f"{_number(size, unit)} {_UNITS[unit]}"


def of(done: float, total: float) -> str:
    """``0.4 of 1.8 GB``: both in the unit of ``total``."""
    return f"{_number(done, _unit(total))} of {text(total)}"


def _unit(size: float) -> int:
    for index in range(len(_UNITS)):
        # 999.96 kB would be rounded to 1000.0 kB.
        if size < (1000 if index == 0 else 999.95) * 1000**index:
            return index
    return len(_UNITS) - 1


def _number(size: float, unit: int) -> str:
    return f"{size / 1000**unit:.{1 if unit else 0}f}"
