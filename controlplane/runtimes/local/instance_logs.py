"""An instance's log file: limited in size, rotated, read from its end.

Decides names and sizes. Must not know the content of a log.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from amphitrite.controlplane.runtimes.local import log_times

FILE = "server.log"
PREDECESSOR = "server.log.1"
MAX_BYTES = 8 * 1024 * 1024


def open_for_append(directory: Path) -> int:
    """A file descriptor for stdout and stderr. O_APPEND makes the server write at the start after a
    truncation."""
    return os.open(directory / FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def append(directory: Path, line: str) -> None:
    """Adds a line of the control plane."""
    descriptor = open_for_append(directory)
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)


def rotate(directory: Path, max_bytes: int = MAX_BYTES) -> None:
    """Copies a log above ``max_bytes`` to its predecessor and truncates it, because the server
    keeps its file descriptor.

    A line written between the two steps is lost; avoiding that would need a restart of the server.
    """
    path = directory / FILE
    try:
        if path.stat().st_size <= max_bytes:
            return
    except FileNotFoundError:
        return
    temporary = directory / f".{PREDECESSOR}"
    shutil.copyfile(path, temporary)
    temporary.chmod(0o600)
    os.replace(temporary, directory / PREDECESSOR)
    os.truncate(path, 0)


def tail(directory: Path, lines: int, since: float | None = None) -> list[str]:
    """The last ``lines`` lines, across a rotation, and blank ones between them, which do not count;
    only those that may be as young as ``since`` (seconds since the epoch) if it is not None."""
    result = _end(directory / FILE, MAX_BYTES + 1)
    if len(_written(result)) < lines:
        result = _end(directory / PREDECESSOR, MAX_BYTES + 1) + result
    if since is not None:
        result = log_times.younger(result, since, _written_at(directory / FILE))
    places = _written(result)[-lines:] if lines > 0 else []
    return result[places[0] :] if places else []


def _written(lines: list[str]) -> list[int]:
    """Where the lines are that are not blank."""
    return [place for place, line in enumerate(lines) if line.strip()]


def _written_at(path: Path) -> float:
    """When the file was last written to, in seconds since the epoch; 0 without a file."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def end(directory: Path, max_bytes: int = 256 * 1024) -> str:
    """The last ``max_bytes`` of the current log."""
    return "\n".join(_end(directory / FILE, max_bytes))


def _end(path: Path, max_bytes: int) -> list[str]:
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - max_bytes))
            return stream.read(max_bytes).decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return []
