"""What the command line reads of ML_HOME.

Decides where the home is, and how to read what a control plane says about itself there. Must not know how the files
come about.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from amphitrite.schemas.errors import Error

_REPAIR = "check ML_HOME; a damaged file may be removed: ml server start -d writes it anew"


def path(environ: Mapping[str, str] = os.environ) -> Path:
    """``ML_HOME``, else ``~/.amphitrite``. Raises Error LocalFileError for a user without a home directory."""
    try:
        return Path(environ.get("ML_HOME") or Path.home() / ".amphitrite").expanduser().absolute()
    except RuntimeError as exc:  # no HOME, and no such user in the passwd file
        raise Error("LocalFileError", "this user has no home directory", hint="set ML_HOME to a directory") from exc


def read_state(home: Path) -> dict[str, Any] | None:
    """The content of ``server.json``; None when there is none. Raises Error LocalFileError when it is unreadable."""
    file = home / "server.json"
    try:
        state = json.loads(file.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as exc:
        raise Error("LocalFileError", f"cannot read {file}: {exc}", hint=_REPAIR) from exc
    if not isinstance(state, dict) or "api_url" not in state:
        raise Error("LocalFileError", f"{file} is not a control plane's: it names no api_url", hint=_REPAIR)
    return state


def logs(home: Path) -> Path:
    """The directory of all logs."""
    return home / "logs"


def is_alive(state: Mapping[str, Any]) -> bool:
    """Whether the process that wrote ``state`` still runs: its pid exists and is no later process of that number."""
    pid = int(state["pid"])
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    started = _started_at(pid)
    created = state.get("create_time")
    return started is None or created is None or abs(started - float(created)) < 2.0


def _started_at(pid: int) -> float | None:
    """Seconds since the epoch, as /proc tells; None where it does not, and for a process that has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        boot = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime "))
    except (OSError, StopIteration):
        return None
    if fields[0] == "Z":
        return 0.0
    return int(boot.split()[1]) + int(fields[19]) / os.sysconf("SC_CLK_TCK")
