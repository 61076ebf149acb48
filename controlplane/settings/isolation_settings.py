"""The settings of the isolation of instances on this machine.

Decides names, defaults and what is allowed. Must not know how instances are isolated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from amphitrite.controlplane.settings import setting_values as values
from amphitrite.schemas.errors import Error

MODES = ("auto", "required", "off")
NETWORKS = ("machine", "none")


@dataclass(frozen=True, slots=True)
class IsolationSettings:
    """``mode``: one of MODES. ``read``, ``write``: directories of the machine that every instance
    sees, besides what it needs. ``network``: one of NETWORKS."""

    mode: str = "auto"
    network: str = "machine"
    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()


def read(environ: Mapping[str, str], *, mode: str | None) -> IsolationSettings:
    """Variables: ``ML_ISOLATION``, ``ML_ISOLATION_READ``, ``ML_ISOLATION_WRITE``,
    ``ML_ISOLATION_NETWORK``. Raises Error("BadArgument")."""
    default = IsolationSettings()
    return IsolationSettings(
        mode=values.choice("isolation", mode or environ.get("ML_ISOLATION") or default.mode, MODES),
        network=values.choice("ML_ISOLATION_NETWORK", environ.get("ML_ISOLATION_NETWORK") or default.network, NETWORKS),
        read=_directories("ML_ISOLATION_READ", environ),
        write=_directories("ML_ISOLATION_WRITE", environ),
    )


def _directories(name: str, environ: Mapping[str, str]) -> tuple[Path, ...]:
    paths = tuple(Path(text) for text in values.names(environ.get(name)))
    for path in paths:
        if not path.is_absolute() or path == Path("/") or not path.is_dir():
            message = f"{name} has {str(path)!r}; allowed: absolute paths of directories, separated by commas"
            raise Error("BadArgument", message, target=name)
    return paths
