"""An instance's log file: bounded, rotated, read from its end.

Decides names and sizes. Must not know what is in a log.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

FILE = "server.log"
PREDECESSOR = "server.log.1"
MAX_BYTES = 8 * 1024 * 1024


def open_for_append(directory: Path) -> int:
    """A descriptor for the server's stdout and stderr. Appending, so that it writes at the start after a truncation."""
    return os.open(directory / FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def append(directory: Path, line: str) -> None:
    """Add a line of our own."""
    descriptor = open_for_append(directory)
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)


def rotate(directory: Path, max_bytes: int = MAX_BYTES) -> None:
    """Copy a log that has grown too long to its predecessor and truncate it: the server keeps its descriptor.

    A line written between the two is lost; that is the price for not restarting the server.
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


def tail(directory: Path, lines: int) -> list[str]:
    """The last ``lines`` lines, across the rotation."""
    found = _end(directory / FILE, MAX_BYTES + 1)
    if len(found) < lines:
        found = _end(directory / PREDECESSOR, MAX_BYTES + 1) + found
    return found[max(0, len(found) - lines) :] if lines > 0 else []


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
