"""An agent that ends is started again, after a pause that counts its deaths and not how often it
was looked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from amphitrite.controlplane.process.agent_process import STABLE_S, AgentProcess, record_file
from amphitrite.controlplane.settings.home import Home
from amphitrite.controlplane.settings.version import VERSION
from amphitrite.dataplane.machine import processes

from ...waiting import wait_until


class Clock:
    """Seconds, as the test says."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.create()
    return home


def test_quick_deaths_are_counted_once_each(home: Home) -> None:
    clock = Clock()
    # An agent that appends a byte to a file and ends: the file's size is the number of starts.
    starts = home.root / "starts"
    agent = AgentProcess(home, [sys.executable, "-c", f"open({str(starts)!r}, 'a').write('x')"], clock)
    seen = []
    for elapsed in (0.0, 0.5, 0.9, 1.0, 1.5, 2.9, 3.0, 3.5, 6.9, 7.0, 7.0 + STABLE_S, 7.5 + STABLE_S):
        clock.now = 100.0 + elapsed
        agent.ensure_running()
        agent.wait()
        seen.append(starts.stat().st_size)
    assert seen == [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 5, 5]


SLEEPER = [sys.executable, "-c", "import signal; signal.pause()"]


def sleepers(but: int) -> list[psutil.Process]:
    """Those that this process has started and that run, without the one of this number."""
    others = [process for process in psutil.Process().children() if process.pid != but]
    return [p for p in others if p.status() != psutil.STATUS_ZOMBIE and p.cmdline() == SLEEPER]


@pytest.mark.parametrize(
    ("argv", "release", "stays"),
    [(SLEEPER, VERSION, True), (SLEEPER, "0.0.1", False), ([*SLEEPER, "--listen", "other"], VERSION, False)],
    ids=["the same", "another release", "another command line"],
)
def test_an_agent_of_an_earlier_control_plane(home: Home, argv: list[str], release: str, stays: bool) -> None:
    with subprocess.Popen(argv) as earlier:
        try:
            record = processes.of(earlier.pid)
            processes.write(record_file(home), record, release=release)
            agent = AgentProcess(home, SLEEPER)
            agent.ensure_running()
            assert processes.alive(record) is stays
            if not stays:  # For a moment the kernel has no command line of a new process.
                wait_until(lambda: sleepers(earlier.pid), "the new one runs")
            found = sleepers(earlier.pid)
            assert len(found) == (0 if stays else 1)
            for process in found:
                process.kill()
            agent.wait()
        finally:
            earlier.kill()
