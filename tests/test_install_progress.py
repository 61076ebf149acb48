"""``make install``: what it says before it downloads, while it does, and at the end."""

from __future__ import annotations

import os
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


def program(path: Path, script: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def install(venv: Path, path: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": path}
    return subprocess.run(
        ["make", f"VENV={venv}", "install"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def test_a_missing_library_is_named_before_anything_is_downloaded(tmp_path: Path) -> None:
    # A Python without its shared library, and a user who may not install it.
    program(tmp_path / "bin" / "python", 'case "$*" in *version_info*) echo 3.11 ;; *) exit 1 ;; esac')
    program(tmp_path / "path" / "id", "echo 1000")
    done = install(tmp_path, f"{tmp_path / 'path'}:{os.environ['PATH']}")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[:2] == [
        "error: libpython3.11.so is missing. Triton's Python backend is linked with it.",
        "hint: sudo apt-get install libpython3.11",
    ]


def test_the_end_names_the_next_command(tmp_path: Path) -> None:
    program(tmp_path / "bin" / "python", "exit 1")
    (tmp_path / ".serve").touch()  # All is there already.
    done = install(tmp_path, os.environ["PATH"])
    said = f"Amphitrite is installed in {tmp_path}. Next: . {tmp_path}/bin/activate && ml server start -d\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")
