"""The progress of bytes as text: percent, a bar, the rate, the time left.

Decides what is left out where the terminal is narrow. Must not know what is transferred.
"""

from __future__ import annotations

from dataclasses import dataclass

from amphitrite.cli.terminal import sizes
from amphitrite.cli.terminal.durations import remaining

_BAR_MIN, _BAR_MAX = 10, 30
#: Seconds before a rate means something.
_RATE_AFTER_S = 0.5


@dataclass(frozen=True, slots=True)
class Transfer:
    """``done`` of ``total`` bytes are moved. ``started`` and ``now``: seconds of one clock."""

    action: str
    done: int
    total: int
    started: float
    now: float

    @property
    def share(self) -> float:
        """From 0 to 1."""
        return min(1.0, self.done / self.total) if self.total else 1.0

    @property
    def rate(self) -> float | None:
        """Bytes per second; None too early to tell."""
        seconds = self.now - self.started
        return self.done / seconds if seconds >= _RATE_AFTER_S and self.done else None


def facts(transfer: Transfer) -> str:
    """``45 % of 1.8 GB, 210.3 MB/s, 5 s left``."""
    return ", ".join([f"{_percent(transfer).strip()} of {sizes.text(transfer.total)}", *_speed(transfer)])


def with_bar(head: str, transfer: Transfer, tail: str, width: int) -> str:
    """One line of at most ``width`` characters between ``head`` and ``tail``.

    A narrow terminal loses the bar first, then the amounts, then the rate, then the end of the
    line.
    """
    amounts = [sizes.of(transfer.done, transfer.total)]
    speed = _speed(transfer)
    begin = f"{head}{transfer.action} {_percent(transfer)}"
    for parts in ([*amounts, *speed], speed, speed[1:]):
        text = f"{begin} " + ", ".join(parts) + tail if parts else begin + tail
        room = width - len(text)
        if room >= 0:
            break
    if room < _BAR_MIN + 3:
        return text[:width]
    cells = min(_BAR_MAX, room - 3)
    full = int(cells * transfer.share)
    bar = "=" * full + (">" if full < cells else "")
    return f"{begin} [{bar.ljust(cells)}]{text[len(begin) :]}"


def _percent(transfer: Transfer) -> str:
    return f"{int(transfer.share * 100):3d} %"


def _speed(transfer: Transfer) -> list[str]:
    rate = transfer.rate
    if rate is None:
        return []
    left = (transfer.total - transfer.done) / rate
    return [f"{sizes.text(rate)}/s", *([f"{remaining(left)} left"] if left > 0 else [])]
