"""Programs of this machine that some clients are: curl, Node.js, Go, perf_analyzer.

Decides where they are, how ``talking/`` is started, and that it runs once for all its questions.
Must not know what is asked.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from ..cluster import machine

HERE = Path(__file__).parent / "talking"


def found(name: str) -> str:
    """The program, or the test is skipped."""
    return shutil.which(name) or pytest.skip(f"{name} is not installed")


@cache
def version(name: str, question: str) -> str:
    """The first number with a point that the program says of itself. Skips the test where it does
    not even do that."""
    done = subprocess.run([found(name), question], capture_output=True, text=True, check=False)
    match = re.search(r"\d+(?:\.\d+)+", done.stdout + done.stderr)
    return match[0] if done.returncode == 0 and match else pytest.skip(f"{name} does not start: {done.stderr.strip()}")


def node(trust: str, line: str) -> str:
    return _asked(("node",), trust, line)


def go(trust: str, line: str) -> str:
    return _asked(("go",), trust, line)


def _asked(program: tuple[str], trust: str, line: str) -> str:
    process = _running(program[0], trust)
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()
    return process.stdout.readline() or pytest.fail(f"{program[0]} has ended")


@cache
def _running(name: str, trust: str) -> subprocess.Popen[str]:
    command = [found("node"), str(HERE / "talk.mjs")] if name == "node" else [str(_built())]
    # Node.js adds these authorities to its own; Go takes the file in place of the system's.
    environment = {**os.environ, "NODE_EXTRA_CA_CERTS": trust, "SSL_CERT_FILE": trust}
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    atexit.register(_end, process)
    return process


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def _built() -> Path:
    """The program in Go, kept from run to run: a first build compiles Go's own library."""
    compiler, source = found("go"), HERE / "talk.go"
    digest = hashlib.sha256(source.read_bytes() + version("go", "version").encode()).hexdigest()[:16]
    built = machine.cache() / f"talk-{digest}"
    with machine.locked(machine.cache() / "talk.lock"):
        if not built.exists():
            made = built.with_suffix(".new")
            subprocess.run([compiler, "build", "-o", str(made), str(source)], check=True)
            made.rename(built)
    return built
