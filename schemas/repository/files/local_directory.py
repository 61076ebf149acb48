"""A repository in a directory of this machine.

Decides how a directory becomes a listing: links are followed, as in an upload. Must not know any
rule.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

#: Maximum number of entries, more than any repository has. Others are ignored.
_ENTRIES_MAX = 20_000


class LocalRepository:
    """A listing of local files.

    ``files``: path in the repository -> (local path, bytes), as in an upload; or a directory, for
    all files in it. Raises OSError if the directory cannot be read.
    """

    def __init__(self, files: Mapping[str, tuple[Path, int]] | Path) -> None:
        self._files: dict[str, tuple[Path, int]] = {}
        directories = set()
        if isinstance(files, Path):
            for path, size in _walk(files, "", ()):
                if size is None:
                    directories.add(path)
                else:
                    self._files[path] = (files / path, size)
                if len(self._files) + len(directories) >= _ENTRIES_MAX:
                    break
        else:
            self._files.update(files)
        self._sizes = {path: size for path, (_, size) in self._files.items()}
        self._directories = frozenset(directories)

    @property
    def sizes(self) -> Mapping[str, int]:
        return self._sizes

    @property
    def directories(self) -> frozenset[str]:
        return self._directories

    def open(self, path: str) -> BinaryIO:
        return self._files[path][0].open("rb")


def _walk(directory: Path, prefix: str, above: tuple[Path, ...]) -> Iterator[tuple[str, int | None]]:
    """(path, bytes) of files and (path, None) of empty directories."""
    real = directory.resolve()
    if real in above:
        return
    entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    if not entries and prefix:
        yield prefix.rstrip("/"), None
    for entry in entries:
        if entry.is_dir():
            yield from _walk(Path(entry.path), f"{prefix}{entry.name}/", (*above, real))
        elif entry.is_file():
            yield f"{prefix}{entry.name}", entry.stat().st_size
