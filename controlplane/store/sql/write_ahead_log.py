"""The check of SQLite's journal, the write-ahead log, as a process that died left it.

Decides whether a frame was damaged after it had been written. SQLite takes the first frame with a
wrong checksum for the end of the log, because a write may have been cut off there. So it drops what
comes after it and says nothing. But a commit waits until all before it is on the disk: a valid
header of a commit beyond the wrong frame means that committed changes are lost. Must not know what
is in the database. Source: SQLite's document "WAL-mode File Format".
"""

from __future__ import annotations

import struct
from pathlib import Path

_HEADER, _FRAME = 32, 24
_MAGIC = (0x377F0682, 0x377F0683)


def problems(log: Path) -> list[str]:
    """Raises OSError."""
    try:
        data = log.read_bytes()
    except FileNotFoundError:
        return []
    if len(data) < _HEADER + _FRAME:
        return []
    magic, _, page_size, _, salt1, salt2, sum1, sum2 = struct.unpack(">8I", data[:_HEADER])
    order = ">" if magic & 1 else "<"
    if magic not in _MAGIC or _checksum(data[:24], (0, 0), order) != (sum1, sum2):
        return [f"the header of {log.name} is damaged, so its changes are lost"]
    length, sums, at, wrong = _FRAME + page_size, (sum1, sum2), _HEADER, None
    commits = 0
    while at + length <= len(data):
        frame = data[at : at + _FRAME]
        _, commit, first, second, *found = struct.unpack(">6I", frame)
        if wrong is None:
            sums = _checksum(data[at + _FRAME : at + length], _checksum(frame[:8], sums, order), order)
            if (first, second) != (salt1, salt2):
                return []  # The frames of an earlier log begin here.
            wrong = at if tuple(found) != sums else None
        if wrong is not None and (first, second) == (salt1, salt2) and commit:
            commits += 1
        at += length
    # One commit may be the write that was cut off.
    if wrong is None or commits < 2:
        return []
    return [f"{log.name} is damaged at byte {wrong}, so the {commits} changes from there on are lost"]


def _checksum(data: bytes, sums: tuple[int, int], order: str) -> tuple[int, int]:
    first, second = sums
    for low, high in struct.iter_unpack(f"{order}2I", data):
        first = (first + low + second) & 0xFFFFFFFF
        second = (second + high + first) & 0xFFFFFFFF
    return first, second
