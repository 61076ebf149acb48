"""Samples of demand: what is told when, and what another process makes of it. Readings in, rows
out."""

from __future__ import annotations

from typing import Any

import pytest

from amphitrite.dataplane.metrics.demand import Meter, Reading, Sample, due, read, samples_from_json, samples_to_json

BLUE = ("ep", "blue")


def told(*readings: tuple[float, str, Reading]) -> list[tuple[float, float, int, float, float]]:
    """(at, seconds, in flight, answered, refused) of each sample that (now, process, reading)
    make."""
    meter, samples = Meter(), []
    for now, process, reading in readings:
        meter, made = read(meter, process, {BLUE: reading}, {BLUE}, now)
        samples += made
    return [(one.at, one.seconds, one.in_flight, one.answered, one.refused) for one in samples]


def test_counters_become_increases_and_the_first_reading_none() -> None:
    assert told((1, "a", Reading(1, 0, 10)), (2, "a", Reading(3, 0, 15, 2.0, 4)), (3.5, "a", Reading(0, 0, 15))) == [
        (2, 1, 3, 5, 4), (3.5, 1.5, 0, 0, 0),
    ]  # fmt: skip


def test_idle_time_is_told_rarely_and_all_of_it() -> None:
    idle = [(float(now), "a", Reading()) for now in range(11)]
    assert told(*idle) == [(1, 1, 0, 0, 0), (5, 4, 0, 0, 0), (9, 4, 0, 0, 0)]
    # What comes then is told at once, and the idle time before it by itself.
    assert told(*idle[:4], (4.0, "a", Reading(2))) == [(1, 1, 0, 0, 0), (3, 2, 0, 0, 0), (4, 1, 2, 0, 0)]


def test_numbers_of_two_processes_are_not_subtracted() -> None:
    readings = ((1, "a", Reading(1, 0, 10)), (2, "b", Reading(2, 0, 400)), (3, "b", Reading(2, 0, 403)))
    assert told(*readings) == [(2, 1, 2, 0, 0), (3, 1, 2, 3, 0)]
    # One process that counts from zero again has counted what it shows.
    assert told((1, "a", Reading(1, 0, 10)), (2, "a", Reading(1, 0, 4))) == [(2, 1, 1, 4, 0)]


def test_each_deployment_is_read_as_often_as_it_wants() -> None:
    every = {BLUE: 1.0, ("ep", "slow"): 10.0}
    meter, _ = read(Meter(), "a", dict.fromkeys(every, Reading()), every, 0.0)
    assert due(meter, every, 0.5) == set()
    assert due(meter, every, 1.0) == {BLUE}
    assert due(meter, every, 9.5) == set(every)
    assert due(meter, {**every, ("ep", "new"): 5.0}, 0.1) == {("ep", "new")}


def test_the_wire_form_has_ages_because_clocks_differ() -> None:
    sample = Sample(BLUE, 100.0, 1.0, 2, 3, 4.0, 0.5, 6.0)
    (row,) = samples_to_json([sample], 102.5)
    assert row == ["ep", "blue", 2.5, 1.0, 2, 3, 4, 0.5, 6]
    assert samples_from_json([row], 1002.5) == [Sample(BLUE, 1000.0, 1.0, 2, 3, 4.0, 0.5, 6.0)]


@pytest.mark.parametrize(
    "value",
    [None, {}, [1], [[]], [["ep", "blue", 0, 1, 2, 3, 4, 5]], [["e p", "blue", 0, 1, 2, 3, 4, 5, 6]],
     [["ep", "blue", 0, 1, -2, 3, 4, 5, 6]], [["ep", "blue", 0, 1, True, 3, 4, 5, 6]],
     [["ep", "blue", 0, 1, float("nan"), 3, 4, 5, 6]], [["ep", "blue", 0, 1, 1e13, 3, 4, 5, 6]]],
)  # fmt: skip
def test_what_is_no_flush_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        samples_from_json(value, 0.0)
