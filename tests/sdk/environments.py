"""One environment for each release of Azure's SDK under test, made with uv and kept in the
checkout.

Decides which releases are tested, what each is installed with and when an environment is made anew.
Must not know what runs in them. ``requirements/RELEASE.in`` is what a user asks for, and what an
old release needs to be imported at all; the set ``sdk-RELEASE`` of ``deploy/lock.txt`` is what that
came to. By hand: ``python -m tests.sdk.environments``.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from uv import find_uv_bin

from deploy.lock import requirements

from .. import tiers

#: The newest, and the oldest that is promised. What lies between, as 1.31.0, speaks as the older
#: one does and takes ten seconds of a run, so it is tested when ``AMPHITRITE_SDK_RELEASES`` names
#: it (releases with a space between).
RELEASES = tuple(os.environ.get("AMPHITRITE_SDK_RELEASES", "1.35.2 1.20.0").split())
NEWEST = RELEASES[0]

KEPT = Path(__file__).resolve().parents[2] / ".venv-sdk"


def provide() -> dict[str, Path]:
    """Release -> the interpreter of its environment, each made where it is missing or was made of
    other pins."""
    tiers.needs("sdk")
    KEPT.mkdir(exist_ok=True)
    with ThreadPoolExecutor(len(RELEASES)) as pool:
        return dict(zip(RELEASES, pool.map(_environment, RELEASES), strict=True))


def _environment(release: str) -> Path:
    directory, locked = KEPT / release, requirements(f"sdk-{release}")
    python, stamp, wanted = directory / "bin" / "python", directory / "stamp", _stamp(locked)
    with _locked(KEPT / f"{release}.lock"):
        if not stamp.exists() or stamp.read_text() != wanted:
            shutil.rmtree(directory, ignore_errors=True)
            _uv("venv", "--python", sys.executable, directory)
            _uv("pip", "install", "--python", python, "--require-hashes", "--no-deps", "-r", "-", stdin=locked)
            stamp.write_text(wanted)
    return python


def _stamp(locked: str) -> str:
    """What the environment depends on."""
    return f"{hashlib.sha256(locked.encode()).hexdigest()} {sys.version} {sys.base_prefix}"


def _uv(*arguments: str | Path, stdin: str = "") -> None:
    command = [find_uv_bin(), "--quiet", *map(str, arguments)]
    environment = dict(os.environ)
    # What pip is told of where to look and whom to trust, uv is told too.
    for ours, theirs in (("UV_DEFAULT_INDEX", "PIP_INDEX_URL"), ("SSL_CERT_FILE", "PIP_CERT")):
        if theirs in environment:
            environment.setdefault(ours, environment[theirs])
    done = subprocess.run(command, env=environment, input=stdin, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One process at a time; the lock ends with the process."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    started = time.monotonic()
    for name, interpreter in provide().items():
        print(f"{name}  {interpreter}")
    print(f"{time.monotonic() - started:.1f} s")
