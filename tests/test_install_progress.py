"""``make install`` while it downloads and unpacks: it goes on telling that it works."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: A recipe that says nothing by itself, until it is told to end.
_RECIPE = "silent: ; @$(TELL_TIME); read word; echo ended"


def test_a_silent_step_of_the_install_is_told_as_long_as_it_takes(tmp_path: Path) -> None:
    command = ["make", f"--eval={_RECIPE}", "silent", "TELL_EVERY=0.05", f"VENV={tmp_path}"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(3):
            assert re.fullmatch(rf"  \d+ s: \d+ MB in {tmp_path}\n", process.stdout.readline())
        process.stdin.write("\n")
        process.stdin.close()
        # The pipe ends with its last writer: nothing stays behind.
        rest = process.stdout.read()
    assert (process.returncode, rest.splitlines()[-1]) == (0, "ended")
