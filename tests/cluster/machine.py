"""What the tests of a cluster need of the machine they run on.

Decides whether it has that, what is installed by itself (Debian packages, as root), where caches
lie, and the sentences that say why tests are skipped. Must not know clusters or images.
"""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def cache() -> Path:
    """Where images and what they are made of are kept from run to run, or what
    ``AMPHITRITE_TEST_CACHE`` names."""
    named = os.environ.get("AMPHITRITE_TEST_CACHE")
    path = Path(named) if named else Path.home() / ".cache" / "amphitrite" / "test-images"
    path.mkdir(parents=True, exist_ok=True)
    return path


def is_root_on_linux() -> bool:
    return platform.system() == "Linux" and platform.machine() == "x86_64" and os.geteuid() == 0


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time; the lock ends with the process."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def install(packages: Mapping[str, str]) -> None:
    """Has the programs ``packages`` (program -> Debian package); skips the test where that cannot
    be."""
    missing = sorted({package for program, package in packages.items() if not shutil.which(program)})
    if not missing:
        return
    if os.geteuid() or not shutil.which("apt-get"):
        pytest.skip(f"building images needs {', '.join(missing)}: as root, apt-get install {' '.join(missing)}")
    apt("update", "-qq")
    apt("install", "-y", "-qq", "--no-install-recommends", *missing)


def apt(*arguments: str) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    run("apt-get", "-o", "DPkg::Lock::Timeout=300", *arguments, env=environment)


def run(
    *command: str | Path,
    stdin: str | bytes | None = None,
    env: Mapping[str, str] | None = None,
    timeout_s: float = 900.0,
    check: bool = True,
) -> str:
    """What the command printed; AssertionError with the command and both outputs when it fails and
    ``check`` is on."""
    answer = subprocess.run(
        [str(part) for part in command],
        input=stdin.encode() if isinstance(stdin, str) else stdin if stdin is not None else b"",
        capture_output=True,
        env=env,
        cwd=ROOT,
        timeout=timeout_s,
        check=False,
    )
    output, errors = answer.stdout.decode(errors="replace"), answer.stderr.decode(errors="replace")
    if check and answer.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}: exit status {answer.returncode}\n{output}{errors}")
    return output
