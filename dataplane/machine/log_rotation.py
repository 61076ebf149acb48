"""Log files that do not grow without end.

Decides when a file is set aside and how many are kept. Must not know what is in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

_MAX_BYTES = 32 * 1024 * 1024


def rotate(files: Iterable[Path], reopen: Callable[[], None], max_bytes: int = _MAX_BYTES) -> bool:
    """Rename each file that has reached ``max_bytes`` to ``<name>.1``, replacing that, then ``reopen`` them once."""
    full = [path for path in files if path.exists() and path.stat().st_size >= max_bytes]
    for path in full:
        path.replace(path.with_name(f"{path.name}.1"))
    if full:
        reopen()
    return bool(full)
