"""Back-off and the row of failures, by rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from amphitrite.controlplane.core.desired.resources import DEFAULT_READINESS_PROBE
from amphitrite.controlplane.core.observed.observations import Instance
from amphitrite.controlplane.core.planning.rollout import (
    BACKOFF_SERVED_MAX_S,
    LOAD_DEADLINE_S,
    STABLE_S,
    backoff_s,
    failures_in_a_row,
    load_deadline_s,
    restart_delay_s,
)

from .builders import NOW, instance, workload

W = workload()


def crashed(attempt: int, **more: object) -> Instance:
    return instance(W, 0, attempt, "exited", **more)


@pytest.mark.parametrize(
    ("failures", "seconds"), [(0, 0), (1, 1), (2, 2), (3, 4), (4, 8), (9, 256), (10, 300), (50, 300)]
)
def test_backoff_doubles_up_to_five_minutes(failures: int, seconds: float) -> None:
    assert backoff_s(failures) == seconds


@pytest.mark.parametrize(
    ("slot", "count"),
    [
        ([], 0),
        ([instance(W)], 0),
        ([crashed(1)], 1),
        ([crashed(1), crashed(2)], 2),
        ([crashed(1), crashed(2), instance(W, 0, 3, "starting")], 2),
        ([crashed(1), crashed(2), instance(W, 0, 3, ready_at=NOW - STABLE_S)], 0),
        ([crashed(1), crashed(2, ready_at=NOW - STABLE_S - 1), crashed(3)], 1),
        ([crashed(1, requested_stop=True)], 0),
        ([crashed(1, requested_stop=True, live=False)], 1),
        ([crashed(1, requested_stop=True, started_at=NOW - LOAD_DEADLINE_S)], 1),
    ],
    ids=[
        "nothing",
        "ready",
        "one",
        "two",
        "two and starting",
        "stable now",
        "stable between",
        "asked to",
        "hung",
        "overdue",
    ],
)
def test_failures_in_a_row(slot: list[Instance], count: int) -> None:
    assert failures_in_a_row(slot, LOAD_DEADLINE_S, NOW) == count


def served(attempt: int) -> Instance:
    return crashed(attempt, ready_at=NOW - 5)


@pytest.mark.parametrize(
    ("slot", "seconds"),
    [
        ([], 0),
        ([served(1)], 1),
        ([served(1), served(2)], 2),
        ([served(n) for n in range(1, 7)], BACKOFF_SERVED_MAX_S),
        ([*(served(n) for n in range(1, 7)), crashed(7)], BACKOFF_SERVED_MAX_S),
        ([*(served(n) for n in range(1, 7)), *(crashed(n) for n in range(7, 12))], 16),
        ([*(crashed(n) for n in range(1, 7)), served(7)], BACKOFF_SERVED_MAX_S),
        ([crashed(n) for n in range(1, 7)], 32),
        ([served(1), served(2), crashed(3, ready_at=NOW - STABLE_S - 1)], 0),
    ],
    ids=[
        "nothing",
        "once",
        "twice",
        "six times",
        "then one that did not load",
        "then five",
        "loads at last",
        "never loads",
        "stable in the end",
    ],
)
def test_one_that_has_served_is_back_soon_however_often_it_is_ended(slot: list[Instance], seconds: float) -> None:
    assert restart_delay_s(slot, LOAD_DEADLINE_S, NOW) == seconds


@pytest.mark.parametrize(
    ("probe", "seconds"),
    [({}, 600), ({"initial_delay": 599}, 603), ({"period": 30, "failure_threshold": 60}, 1800)],
    ids=["usual", "delay", "threshold"],
)
def test_a_readiness_probe_may_ask_for_more_time_to_load(probe: dict[str, int], seconds: float) -> None:
    assert load_deadline_s(replace(DEFAULT_READINESS_PROBE, **probe)) == seconds
