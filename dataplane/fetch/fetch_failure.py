"""Why a fetch failed.

Decides that one exception stands for everything that can go wrong. The product's own error type is
in a package that the fetcher's image does not have. Must not know who prints it.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class FetchFailure(Exception):
    """``message``: what happened. ``hint``: what to do about it. Neither holds a grant or a signed
    address."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


class DiskFull(FetchFailure):
    """The cache has no space left."""


@contextmanager
def disk_failures(place: Path) -> Iterator[None]:
    """Turns OSError into FetchFailure, with what to do about a full disk or a directory that cannot
    be written."""
    try:
        yield
    except OSError as exc:
        if exc.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(
                f"no space left in the model cache {place}", "make the volume larger, or free space"
            ) from exc
        hint = "check the volume of the model cache"
        if exc.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            hint = "the volume must be writable for this container's user; fsGroup does nothing for a hostPath"
        raise FetchFailure(f"the model cache {place} cannot be used: {exc.strerror or exc}", hint) from exc
