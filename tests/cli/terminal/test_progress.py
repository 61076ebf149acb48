"""What a long verb shows while it runs: on a terminal, and elsewhere."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

import pytest

from amphitrite.cli.session.rest_client import Client
from amphitrite.cli.session.session import Session
from amphitrite.cli.terminal import sizes, transfer_line
from amphitrite.cli.terminal.options import Options
from amphitrite.cli.terminal.progress import SILENT_BYTES, Mode, Progress
from amphitrite.cli.terminal.transfer_line import Transfer

from ...waiting import wait_until

MB = 1_000_000


@dataclass
class Clock:
    """Seconds, as a test says."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_the_last_line_stays(capsys: pytest.CaptureFixture[str], clock: Clock) -> None:
    with Progress("endpoint/ep", mode="live", clock=clock) as progress:
        progress.phase("Loading")
        clock.now = 4.2
        progress.done("created")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "\r\x1b[Kendpoint/ep created in 4.2 s\n" in shown.err
    assert shown.err.endswith("\r\x1b[K")


def test_nothing_is_left_when_it_fails(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="no"), Progress("blue", mode="live"):
        raise ValueError("no")
    assert capsys.readouterr().err.splitlines()[-1].endswith("\x1b[K")


def test_a_cause_is_whole_and_stays_on_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    cause = "m/1/model.py:9: ValueError: " + "no weights " * 30
    with Progress("deployment/ep/blue", mode="live") as progress:
        for _ in range(3):
            progress.tell(cause)
            progress.phase("Retrying: 0 of 1 instances ready")
    assert capsys.readouterr().err.count(f"\r\x1b[Kdeployment/ep/blue: {cause}\n") == 1


def test_a_note_is_not_printed_into_the_line_that_is_rewritten(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody(options: Options) -> Client:
        raise AssertionError

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    session = Session(Options(), nobody)
    with session.progress("endpoint/ep"):
        session.note("note: it exists already")
    session.note("note: afterwards")
    shown = capsys.readouterr().err
    assert "\r\x1b[Knote: it exists already\n" in shown
    assert shown.endswith("\r\x1b[Knote: afterwards\n")


@pytest.mark.parametrize("mode", ["lines", "silent"])
def test_short_commands_are_silent_where_nobody_looks(
    mode: Mode, capsys: pytest.CaptureFixture[str], clock: Clock
) -> None:
    with Progress("blue", mode=mode, clock=clock) as progress:
        progress.phase("Loading")
        progress.transfer("uploading", 1, SILENT_BYTES)
        clock.now = 0.9
        progress.phase("Routing")
        progress.done("created")
    assert capsys.readouterr().err == ""


def test_a_line_for_each_change_of_phase_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str], clock: Clock
) -> None:
    phases = ["Starting: 0 of 1 instances ready"] * 10 + ["Loading: 0 of 1 instances ready"] * 90 + ["Routing"] * 3
    with Progress("deployment/ep/blue", mode="lines", clock=clock) as progress:
        for phase in phases:
            progress.phase(phase)
            clock.now += 0.5
        progress.tell("m/1/model.py:9: ValueError: no weights")
        clock.now = 61.5
        progress.done("created")
    assert capsys.readouterr().err.splitlines() == [
        "deployment/ep/blue: Starting: 0 of 1 instances ready (1.0 s)",
        "deployment/ep/blue: Loading: 0 of 1 instances ready (5.0 s)",
        "deployment/ep/blue: Routing (50.0 s)",
        "deployment/ep/blue: m/1/model.py:9: ValueError: no weights",
        "deployment/ep/blue created in 1 min 1 s",
    ]


def test_a_transfer_is_reported_at_its_start_and_then_every_ten_seconds(
    capsys: pytest.CaptureFixture[str], clock: Clock
) -> None:
    with Progress("model/pets", mode="lines", clock=clock) as progress:
        progress.transfer("reading files", 0, 1000 * MB)
        clock.now = 2
        progress.transfer("reading files", 500 * MB, 1000 * MB)
        for second in range(4, 24):
            clock.now = second
            progress.transfer("uploading", (second - 4) * 50 * MB, 1000 * MB)
        progress.done("version 1 registered")
    assert capsys.readouterr().err.splitlines() == [
        "model/pets: reading files 50 % of 1.0 GB, 250.0 MB/s, 2 s left (2.0 s)",
        "model/pets: uploading 0 % of 1.0 GB (4.0 s)",
        "model/pets: uploading 50 % of 1.0 GB, 50.0 MB/s, 10 s left (14.0 s)",
        "model/pets version 1 registered in 23.0 s",
    ]


def test_one_phase_that_lasts_is_reported_though_nothing_changes(capsys: pytest.CaptureFixture[str]) -> None:
    seen = ""

    def reported() -> bool:
        nonlocal seen
        seen += capsys.readouterr().err
        return bool(seen)

    with Progress("control plane", mode="lines") as progress:
        progress.phase("stopping")
        wait_until(reported, "a line about the phase")
    assert re.fullmatch(r"control plane: stopping \(\d\.\d s\)\n", seen)


TRANSFER = Transfer("uploading", 450 * MB, 999_900_000, started=10.0, now=13.0)


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (
            100,
            "model/pets: uploading  45 % [=========>            ] 450.0 of 999.9 MB, 150.0 MB/s, 4 s left (3.2 s)",
        ),
        (80, "model/pets: uploading  45 % 450.0 of 999.9 MB, 150.0 MB/s, 4 s left (3.2 s)"),
        (70, "model/pets: uploading  45 % [====>      ] 150.0 MB/s, 4 s left (3.2 s)"),
        (50, "model/pets: uploading  45 % 4 s left (3.2 s)"),
        (20, "model/pets: uploadin"),
    ],
)
def test_a_bar_fits_the_terminal(width: int, line: str) -> None:
    drawn = transfer_line.with_bar("model/pets: ", TRANSFER, " (3.2 s)", width)
    assert len(drawn) <= width
    assert drawn == line


def test_a_small_transfer_is_counted_in_its_own_unit() -> None:
    transfer = Transfer("uploading", 90, 602, started=10.0, now=10.0)
    assert transfer_line.with_bar("model/pets: ", transfer, "", 80).endswith("] 90 of 602 B")


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (1459, "1.5 kB"),
        (999_949, "999.9 kB"),
        (999_960, "1.0 MB"),
        (1.8e9, "1.8 GB"),
        (5e15, "5000.0 TB"),
    ],
)
def test_sizes_have_one_form(size: float, text: str) -> None:
    assert sizes.text(size) == text


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (80, "deployment/math/blue: Loading: 0 of 1 instances ready (0.0 s)"),
        (50, "deployment/math/blue: Loading: 0 of 1... (0.0 s)"),
        (20, "deployme... (0.0 s)"),
    ],
)
def test_a_phase_is_cut_behind_a_word(columns: int, line: str, clock: Clock) -> None:
    progress = Progress("deployment/math/blue", mode="live", clock=clock)
    progress.phase("Loading: 0 of 1 instances ready")
    drawn = progress._live_text(columns - 1)
    assert drawn == line
    assert len(drawn) < columns
