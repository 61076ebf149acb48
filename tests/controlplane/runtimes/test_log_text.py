"""One instance's part of the log of a deployment."""

from __future__ import annotations

import pytest

from amphitrite.controlplane.core.observed.observations import Instance
from amphitrite.controlplane.runtimes.local.log_times import younger
from amphitrite.controlplane.runtimes.log_text import previous_attempts, select_instance
from amphitrite.schemas.errors import Error

from ..core.builders import workload

ONE = "==> blue-0-1, exited, exit code 1 <==\na line\n==> not a heading\n"
OTHER = "==> blue-1-1, ready <==\n"


@pytest.mark.parametrize(
    ("instance", "wanted"), [("blue-0-1", ONE), ("blue-0", ONE), ("blue-1-1", OTHER), ("blue", ONE + OTHER)]
)
def test_only(instance: str, wanted: str) -> None:
    assert select_instance(ONE + OTHER, instance) == wanted


@pytest.mark.parametrize(
    ("text", "hint"), [(ONE + OTHER, "instances with a log: blue-0-1, blue-1-1"), ("", "instances with a log: none")]
)
def test_an_instance_that_is_not_there(text: str, hint: str) -> None:
    with pytest.raises(Error, match="no instance green has a log") as caught:
        select_instance(text, "green")
    assert (caught.value.code, caught.value.hint) == ("ResourceNotFound", hint)


def attempt(slot: int, number: int) -> Instance:
    return Instance(f"blue-{slot}-{number}", workload(), slot, number, "exited", None, float(number))


@pytest.mark.parametrize(
    ("attempts", "previous"),
    [
        ([], []),
        ([(0, 1)], []),
        ([(0, 1), (0, 2)], [(0, 1)]),
        ([(0, 3), (0, 1), (0, 2)], [(0, 2)]),
        ([(0, 1), (0, 2), (1, 1), (2, 4), (2, 5)], [(0, 1), (2, 4)]),
    ],
)
def test_the_attempt_before(attempts: list[tuple[int, int]], previous: list[tuple[int, int]]) -> None:
    found = previous_attempts([attempt(*one) for one in attempts], lambda one: one.slot)
    assert [(one.slot, one.attempt) for one in found] == previous


#: 2026-11-22 22:00:00 UTC.
TEN = 1_795_384_800.0
LOG = [
    "amphitrite: starting on 9000",
    "2026-11-22T21:00:00Z I 7 server.cc:1] begins",
    "+----------+",
    "2026-11-22T21:30:00Z I 7 http_server.cc:2] Started HTTPService",
    "what a model prints",
    "2026-11-22T21:50:00Z W 7 python.cc:3] careful",
    "printed later",
]


@pytest.mark.parametrize(
    ("minutes", "written_at", "lines"),
    [
        (600, TEN, 7),
        (59, TEN, 5),  # The table may have been written until the next line was.
        (31, TEN, 5),
        (29, TEN, 3),
        (20, TEN, 3),
        (9, TEN, 1),
        (9, TEN - 3600, 0),
    ],
)
def test_lines_that_may_be_younger(minutes: int, written_at: float, lines: int) -> None:
    assert younger(LOG, TEN - 60 * minutes, written_at) == LOG[len(LOG) - lines :]


def test_what_is_no_date_is_no_time() -> None:
    assert younger(["2026-02-30T21:00:00Z I 7 a.cc:1] odd"], TEN - 1, TEN) == ["2026-02-30T21:00:00Z I 7 a.cc:1] odd"]
