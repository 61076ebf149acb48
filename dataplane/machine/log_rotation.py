"""Log rotation.

Decides when a file is renamed and how many are kept. Must not know what is in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

_MAX_BYTES = 32 * 1024 * 1024


def rotate(files: Iterable[Path], reopen: Callable[[], None], max_bytes: int = _MAX_BYTES) -> bool:
    """Rename each file that has reached ``max_bytes`` to ``<name>.1``, in place of the last one,
    then call ``reopen`` once. Whether any was renamed."""
    full = [path for path in files if path.exists() and path.stat().st_size >= max_bytes]
    for path in full:
        path.replace(path.with_name(f"{path.name}.1"))
    if full:
        reopen()
    return bool(full)
