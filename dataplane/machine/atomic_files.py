"""Writes a small file so that a reader sees the old text or the new one, never a part.

Decides how text gets to disk: a temporary name beside it, fsync, rename, fsync of the directory.
Must not know what the text is.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_atomically(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Replace the content of ``path`` with ``data``. The file has ``mode`` from its first byte on.
    Raises OSError."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def write_private(path: Path, text: str) -> None:
    """Replace the content of ``path`` with ``text``, readable by its owner only. Raises OSError."""
    write_atomically(path, text.encode("utf-8"))
