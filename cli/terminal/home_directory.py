"""The part of ML_HOME that the command line reads.

Decides where the directory is, and how to read the state file of a control plane there. Must not
know who writes the files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from amphitrite.schemas.errors import Error
from amphitrite.schemas.sealed_json import unseal

_REPAIR = "check ML_HOME; if the file is damaged, remove it and run `ml server start -d`"


def path(environ: Mapping[str, str] = os.environ) -> Path:
    """``ML_HOME``, else ``~/.amphitrite``.

    Raises Error LocalFileError for a user without a home directory.
    """
    try:
        return Path(environ.get("ML_HOME") or Path.home() / ".amphitrite").expanduser().absolute()
    except RuntimeError as exc:  # no HOME, and no such user in the passwd file
        raise Error("LocalFileError", "this user has no home directory", hint="set ML_HOME to a directory") from exc


def read_state(home: Path) -> dict[str, Any] | None:
    """The content of ``server.json``; None if there is no such file.

    Raises Error LocalFileError if the file cannot be read or is not a control plane's.
    """
    file = home / "server.json"
    try:
        state = unseal(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except PermissionError as exc:
        raise permission_denied(file) from exc
    except (OSError, ValueError) as exc:
        raise Error("LocalFileError", f"cannot read {file}: {exc}", hint=_REPAIR) from exc
    if not isinstance(state, dict) or "api_url" not in state:
        raise Error("LocalFileError", f"{file} does not describe a control plane: it has no api_url", hint=_REPAIR)
    return state


def is_serving(home: Path) -> bool:
    """Whether Envoy, or the agent that restarts it, runs for this home, with a control plane or
    without one."""
    for name in ("envoy.json", "agent.json"):
        try:
            record = unseal((home / "dataplane" / name).read_text(encoding="utf-8"))
            if is_alive(record):
                return True
        except (OSError, ValueError, LookupError, TypeError):
            continue  # none, or damaged: a start decides what becomes of it
    return False


def permission_denied(file: Path) -> Error:
    """The Error for a file of ML_HOME that belongs to somebody else."""
    hint = "set ML_HOME to a directory of yours"
    return Error("LocalFileError", f"cannot read {file}: permission denied", target=str(file), hint=hint)


def log_directory(home: Path) -> Path:
    """The directory of all logs."""
    return home / "logs"


def is_alive(state: Mapping[str, Any]) -> bool:
    """Whether the process that wrote ``state`` still runs.

    Its pid must exist, and its start time must match: the number may belong to a later process.
    """
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
    """Start time in seconds since the epoch (proc(5)); None if unknown, 0 for an ended process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        boot = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime "))
    except (OSError, StopIteration):
        return None
    if fields[0] == "Z":
        return 0.0
    return int(boot.split()[1]) + int(fields[19]) / os.sysconf("SC_CLK_TCK")
