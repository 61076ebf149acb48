"""The demand that one proxy sees, sample by sample: what came, what is in work, what was refused.

Decides what a sample holds, that idle time is told rarely and still is no silence, and that numbers
of two processes are never subtracted. Pure. Must not know a proxy's own names, files or HTTP.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from amphitrite.dataplane.metrics.counters import NAME, Series

#: A deployment without a request is sampled only so often, in seconds. It is less than the time
#: after which the newest sample says nothing about now (``core.scaling.scaling_policy``).
IDLE_S = 4.0
#: Samples of one deployment that wait for a control plane. The oldest are dropped.
WAITING_MAX = 200
#: Of one flush.
_SAMPLES_MAX = 100_000
NUMBER_MAX = 1e12


@dataclass(frozen=True, slots=True)
class Reading:
    """The numbers of one deployment. ``in_flight``, ``held``: now. ``answered``, ``busy_s`` (the
    sum of their durations) and ``refused``: since the start of the proxy's process."""

    in_flight: int = 0
    held: int = 0
    answered: float = 0.0
    busy_s: float = 0.0
    refused: float = 0.0


@dataclass(frozen=True, slots=True)
class Sample:
    """What happened in the ``seconds`` up to ``at``. ``at``: by a clock that only this process has.
    ``in_flight``, ``held``: at the end."""

    series: Series
    at: float
    seconds: float
    in_flight: int = 0
    held: int = 0
    answered: float = 0.0
    busy_s: float = 0.0
    refused: float = 0.0

    @property
    def is_idle(self) -> bool:
        return not (self.in_flight or self.held or self.answered or self.refused)


@dataclass(frozen=True, slots=True)
class Watch:
    """One deployment's state. ``last``: the newest reading, ``read_at``: when it was. ``told_at``:
    up to when samples were made. ``was_idle``: whether the newest sample is."""

    last: Reading
    read_at: float
    told_at: float
    was_idle: bool = False


@dataclass(frozen=True, slots=True)
class Meter:
    """``process``: whose numbers the readings are."""

    process: object = None
    watches: Mapping[Series, Watch] = field(default_factory=dict)


def due(meter: Meter, every_s: Mapping[Series, float], now: float) -> set[Series]:
    """The deployments to be read now. ``every_s``: how often each is to be sampled."""
    # Threads wake up a little early or late.
    return {
        series
        for series, seconds in every_s.items()
        if (watch := meter.watches.get(series)) is None or now - watch.read_at >= 0.9 * seconds
    }


def read(
    meter: Meter, process: object, readings: Mapping[Series, Reading], watched: Collection[Series], now: float
) -> tuple[Meter, list[Sample]]:
    """The meter after ``readings``, and the samples that they make.

    ``watched``: all deployments that are sampled; what is not among them is forgotten. The first
    reading of a deployment makes no sample. The first one of another process counts nothing, since
    nobody knows from where that process counts: it may have taken over its predecessor's numbers.
    """
    watches = {series: watch for series, watch in meter.watches.items() if series in watched}
    samples: list[Sample] = []
    for series, reading in readings.items():
        watch = watches.get(series)
        if watch is None:
            watches[series] = Watch(reading, now, now)
            continue
        before = watch.last if process == meter.process else reading
        sample = Sample(
            series,
            now,
            now - watch.read_at,
            reading.in_flight,
            reading.held,
            _increase(before.answered, reading.answered),
            _increase(before.busy_s, reading.busy_s),
            _increase(before.refused, reading.refused),
        )
        made, told_at = _told(watch, sample, now)
        samples += made
        idle = made[-1].is_idle if made else watch.was_idle
        watches[series] = Watch(reading, now, told_at, idle)
    return Meter(process, watches), samples


def _told(watch: Watch, sample: Sample, now: float) -> tuple[list[Sample], float]:
    """The samples to send, and up to when they tell."""
    if sample.is_idle:
        if watch.was_idle and now - watch.told_at < IDLE_S:
            return [], watch.told_at
        return [Sample(sample.series, now, now - watch.told_at)], now
    silent_s = watch.read_at - watch.told_at
    earlier = [Sample(sample.series, watch.read_at, silent_s)] if silent_s > 0 else []
    return [*earlier, sample], now


def _increase(before: float, after: float) -> float:
    """A counter below its last value was counted from zero."""
    return after - before if after >= before else after


def samples_to_json(samples: Collection[Sample], now: float) -> list[list[Any]]:
    """The wire form: endpoint, deployment, age in seconds, and the numbers, of each sample."""
    return [
        [
            *one.series,
            round(max(now - one.at, 0.0), 3),
            round(one.seconds, 3),
            one.in_flight,
            one.held,
            round(one.answered),
            round(one.busy_s, 6),
            round(one.refused),
        ]
        for one in samples
    ]


def samples_from_json(value: object, now: float) -> list[Sample]:
    """The inverse; ``now``: by the reader's clock. Raises ValueError, with a sentence, for anything
    else: the value comes from another process."""
    if not isinstance(value, list) or len(value) > _SAMPLES_MAX:
        raise ValueError(f"samples must be a list of at most {_SAMPLES_MAX}")
    return [_sample(row, now) for row in value]


def _sample(row: object, now: float) -> Sample:
    if not isinstance(row, list) or len(row) != 9:
        raise ValueError("a sample must be a list of 9 values")
    endpoint, deployment, *numbers = row
    for name in (endpoint, deployment):
        if not isinstance(name, str) or NAME.fullmatch(name) is None:
            raise ValueError(f"{str(name)[:80]!r} is not a name of a series")
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number < NUMBER_MAX:
            raise ValueError(f"{str(number)[:40]!r} is not a number from 0")
    age_s, seconds, in_flight, held, answered, busy_s, refused = numbers
    return Sample((endpoint, deployment), now - age_s, seconds, in_flight, held, answered, busy_s, refused)
