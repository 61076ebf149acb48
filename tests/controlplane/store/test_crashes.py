"""``kill -9`` between any two lines of the store leaves all of a change or nothing of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ... import postgresql

pytestmark = [pytest.mark.slow, pytest.mark.early]
#: kind of database -> how many lines of code lie between two places of death, and so how many there
#: are at least.
PLACES = {"sqlite": (71, 15), "postgresql": (191, 5)}


@pytest.mark.parametrize("scenario", ["changes", "uploads"])
def test_killed_at_many_lines(kind: str, tmp_path: Path, scenario: str) -> None:
    every, at_least = PLACES[kind]
    program = Path(__file__).with_name("crash.py")
    command = [sys.executable, str(program), scenario, str(tmp_path), str(every)]
    if kind == "postgresql":
        command.append(postgresql.server().url.render_as_string(hide_password=False))
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) >= at_least
