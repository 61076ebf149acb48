"""The last lines of growing files.

Decides how the last lines of a file are found, and how to follow a file that is rotated or
truncated. Must not know the content of the lines.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

_BLOCK = 64 * 1024
_POLL_S = 0.2


def lines(files: Mapping[str, Path], count: int, *, follow: bool) -> Iterator[list[tuple[str, str]]]:
    """Yields (name, line) of the last ``count`` lines of each file, all at once.

    With ``follow`` it continues with every new line, without end.
    """
    ends = {}
    found: list[tuple[str, str]] = []
    for name, file in files.items():
        text, ends[name] = _last(file, count)
        found += [(name, line) for line in text]
    yield found
    while follow:
        found = []
        for name, file in files.items():
            text, ends[name] = _added(file, ends[name])
            found += [(name, line) for line in text]
        if found:
            yield found
        else:
            time.sleep(_POLL_S)


#: (inode, offset of the first byte not yet read)
_End = tuple[int, int]


def _last(file: Path, count: int) -> tuple[list[str], _End]:
    try:
        with file.open("rb") as stream:
            inode, size = _identity(file)
            start, block = size, b""
            while start > 0 and block.count(b"\n") <= count:
                start = max(0, start - _BLOCK)
                stream.seek(start)
                block = stream.read(size - start)
    except FileNotFoundError:
        return [], (0, 0)
    complete = block[: block.rfind(b"\n") + 1]
    lines = complete.decode(errors="replace").splitlines()
    return (lines[-count:] if count else []), (inode, size - len(block) + len(complete))


def _added(file: Path, end: _End) -> tuple[list[str], _End]:
    """Complete lines after ``end``; from the start if the file was replaced or truncated."""
    try:
        inode, size = _identity(file)
        offset = end[1] if inode == end[0] and size >= end[1] else 0
        with file.open("rb") as stream:
            stream.seek(offset)
            block = stream.read(size - offset)
    except FileNotFoundError:
        return [], end
    complete = block[: block.rfind(b"\n") + 1]
    return complete.decode(errors="replace").splitlines(), (inode, offset + len(complete))


def _identity(file: Path) -> tuple[int, int]:
    status = file.stat()
    return status.st_ino, status.st_size
