"""``kill -9`` between any two lines of the store leaves all of a change or nothing of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(("scenario", "every", "at_least"), [("changes", 23, 40), ("uploads", 23, 40)])
def test_killed_at_many_lines(tmp_path: Path, scenario: str, every: int, at_least: int) -> None:
    program = Path(__file__).with_name("crash.py")
    command = [sys.executable, str(program), scenario, str(tmp_path), str(every)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) >= at_least
