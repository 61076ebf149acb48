"""How many samples one proxy's agent takes.

Decides the limits: by time, by number and by bytes. Pure. Must not know what a sample is.
"""

from __future__ import annotations

#: Samples in a second, and how many may come at once. At 2 ms of work each they take a tenth of
#: one core.
PER_SECOND = 50.0
BURST = 200.0
#: Bytes of bodies in a second, and at once. JSON takes about 30 ms for a megabyte.
BYTES_PER_SECOND = 4 * 1024 * 1024
BYTES_BURST = 32 * 1024 * 1024
#: Samples that are recorded, or wait to be compared.
IN_WORK_MAX = 32
#: Bytes that these may hold.
HELD_BYTES_MAX = 64 * 1024 * 1024


class Bucket:
    """Holds up to ``burst`` tokens and gets ``rate`` of them per second. It may be overdrawn: what
    a sample costs is known when it has ended. Then there are none until that is paid."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst = rate, burst
        self._level = burst
        self._at: float | None = None

    def available(self, now: float) -> bool:
        """``now``: seconds of one monotonic clock."""
        if self._at is not None:
            self._level = min(self._burst, self._level + self._rate * (now - self._at))
        self._at = now
        return self._level > 0

    def take(self, tokens: float) -> None:
        self._level -= tokens


class SampleLimits:
    """Not thread-safe. Whoever was let in says so by ``leave`` when it has ended."""

    def __init__(self) -> None:
        self._samples = Bucket(PER_SECOND, BURST)
        self._bytes = Bucket(BYTES_PER_SECOND, BYTES_BURST)
        self._in_work = 0
        self._held = 0

    def enter(self, now: float) -> bool:
        """Whether another sample is taken now."""
        available = self._samples.available(now) and self._bytes.available(now)
        if not available or self._in_work >= IN_WORK_MAX or self._held >= HELD_BYTES_MAX:
            return False
        self._samples.take(1)
        self._in_work += 1
        return True

    def hold(self, more: int) -> bool:
        """A sample holds ``more`` bytes than before. False: it must be dropped."""
        self._held += more
        self._bytes.take(more)
        return self._held <= HELD_BYTES_MAX

    def leave(self, held: int) -> None:
        """A sample has ended that has held so many bytes."""
        self._in_work -= 1
        self._held -= held
