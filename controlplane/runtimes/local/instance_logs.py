"""An instance's log file: limited in size, rotated, read from its end.

Decides names and sizes, and which of Triton's lines nobody needs. Must not know what the others
mean.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from amphitrite.controlplane.runtimes.local import log_times

FILE = "server.log"
PREDECESSOR = "server.log.1"
MAX_BYTES = 8 * 1024 * 1024

#: What Triton's HTTP server writes for each connection to a UNIX socket, whatever Triton's own log
#: options say. It may follow a text that has no line end yet.
_NOISE = re.compile(rb"\[\x1b\[[\d;]*mWARN\x1b[^\n]*evhtp\.c:\d+[^\n]*NODELAY NOT SUPPORTED[^\n]*(?:\n|$)")


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
    """Adds a log above ``max_bytes`` to its predecessor, of which it keeps as much, and truncates
    it, because the server keeps its file descriptor.

    A line written between the two steps is lost; avoiding that would need a restart of the server.
    """
    path = directory / FILE
    try:
        if path.stat().st_size <= max_bytes:
            return
    except FileNotFoundError:
        return
    kept = _NOISE.sub(b"", _last(path, 2 * max_bytes))  # More comes in a flood alone.
    if (room := max_bytes - len(kept)) > 0:
        # Little but noise: it must not take the place of what the server said before.
        kept = _last(directory / PREDECESSOR, room) + kept
    temporary = directory / f".{PREDECESSOR}"
    temporary.unlink(missing_ok=True)
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as stream:
        stream.write(kept)
    os.replace(temporary, directory / PREDECESSOR)
    os.truncate(path, 0)


def tail(directory: Path, lines: int, since: float | None = None) -> list[str]:
    """The last ``lines`` lines, across a rotation, and blank ones between them, which do not count;
    only those that may be as young as ``since`` (seconds since the epoch) if it is not None."""
    result = _lines(directory / FILE)
    if len(_written(result)) < lines:
        result = _lines(directory / PREDECESSOR) + result
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
    return "\n".join(_decoded(_NOISE.sub(b"", _last(directory / FILE, MAX_BYTES + 1))[-max_bytes:]))


def _lines(path: Path) -> list[str]:
    return _decoded(_NOISE.sub(b"", _last(path, MAX_BYTES + 1)))


def _decoded(text: bytes) -> list[str]:
    return text.decode("utf-8", "replace").splitlines()


def _last(path: Path, max_bytes: int) -> bytes:
    """The lines at the end of the file that have room in ``max_bytes``; nothing without a file."""
    try:
        with path.open("rb") as stream:
            start = stream.seek(0, os.SEEK_END) - max_bytes
            stream.seek(max(0, start - 1))
            text = stream.read(max_bytes + 1)
    except FileNotFoundError:
        return b""
    return text if start <= 0 else text.partition(b"\n")[2]
