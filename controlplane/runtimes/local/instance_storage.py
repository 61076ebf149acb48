"""What instances take on this machine: their directories, Triton's backends, compiled backends.

Decides which of them an instance needs: its own directory while its record is there, and the
backends that its command line names. Reads only, but for ``remove``. Must not know what becomes of
garbage.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from amphitrite.controlplane.core.storage.garbage import Kind, StoredItem
from amphitrite.dataplane.triton import native_backend

BACKENDS = "backends"


def instance_names(instances: Path) -> list[str]:
    """The directories below ``instances``."""
    return sorted(path.name for path in instances.iterdir() if path.is_dir()) if instances.is_dir() else []


def instance_items(instances: Path, names: Iterable[str], needed: Collection[str]) -> Iterator[StoredItem]:
    for name in names:
        yield from _item("instance", instances / name, name, name in needed)


def backend_items(parent: Path, current: Path | None, pids: Iterable[int]) -> Iterator[StoredItem]:
    """The directories that ``backend_directory.prepare`` made. ``current``: the one that the next
    instance uses; None if it is not known yet, and then the newest one counts as needed."""
    paths = [path for path in parent.iterdir() if path.is_dir()] if parent.is_dir() else []
    used = {Path(argument) for pid in pids for argument in _arguments(pid)}
    newest = current or max(paths, key=_changed_at, default=None)
    for path in sorted(paths):
        yield from _item("backends", path, path.name, path in used or path == newest)


def build_items(environ: Mapping[str, str]) -> Iterator[StoredItem]:
    for path, needed in native_backend.builds(environ):
        yield from _item("build", path, str(path), needed)


def remove(path: Path) -> bool:
    """Whether there was anything to remove. A removal that is cut off is done again."""
    with suppress(FileNotFoundError):
        shutil.rmtree(path)
        return True
    return False


def _arguments(pid: int) -> Iterator[str]:
    """The values of a process's options, such as ``/…`` of ``--backend-directory=/…``."""
    with suppress(OSError):
        for word in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
            yield os.fsdecode(word).partition("=")[2]


def _item(kind: Kind, path: Path, name: str, needed: bool) -> Iterator[StoredItem]:
    """Nothing if the directory is gone."""
    files = size = 0
    for directory, _, inside in os.walk(path):
        for one in inside:
            with suppress(OSError):
                size += (Path(directory) / one).lstat().st_size
                files += 1
    if path.is_dir():
        yield StoredItem(kind, name, files, size, _changed_at(path), needed)


def _changed_at(path: Path) -> float:
    with suppress(OSError):
        return path.stat().st_mtime
    return 0.0
