"""The node's cache: one directory for each model version, shared by all pods of the node.

Decides that ``<cache>/<digest>`` is complete or absent, that one process at a time makes it, and what goes when room is
needed. Must not know how files come.

Beside it lie ``<digest>.lock``, whose time says when the model was last asked for, and ``.<digest>.partial``, which the
next process that wants this model goes on with.

What makes room: models that no deployment uses (the control plane says so when the files are listed) *and* that nobody
on this node has asked for within a day. The first keeps what a running pod may load once more when its container is
restarted, which starts no fetcher; the second keeps what has come into use since the list was made. A cache therefore
belongs to one control plane.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from amphitrite.dataplane.fetch.fetch_failure import DiskFull, disk_problems

#: Seconds for which a model stays after it was last asked for.
KEEP_S = 24 * 3600.0
_LOCK = re.compile(r"([0-9a-f]{64})\.lock")


class Cache:
    """``max_bytes``: what all models together may have, None for no bound but the disk's."""

    def __init__(self, root: Path, max_bytes: int | None = None) -> None:
        """Raises Problem when it cannot be written."""
        self.root, self._max_bytes = root, max_bytes
        with disk_problems(root):
            root.mkdir(mode=0o755, parents=True, exist_ok=True)

    def model(self, digest: str) -> Path:
        return self.root / digest

    @contextmanager
    def locked(self, digest: str) -> Iterator[None]:
        """Nobody else makes or drops this model meanwhile. The kernel frees the lock when the process ends, however."""
        with disk_problems(self.root):
            descriptor = self._open_lock(digest)
            try:
                if not _try_lock(descriptor):
                    print("another pod of this node is fetching this model; waiting for it", flush=True)
                    fcntl.flock(descriptor, fcntl.LOCK_EX)
                os.utime(descriptor)
                yield
            finally:
                os.close(descriptor)

    def building(self, digest: str) -> tuple[Path, Path]:
        """Where the model is put together, under its lock: (the tree, a directory for what belongs into it later). What
        a dead process left there is still there."""
        partial = self._partial(digest)
        with disk_problems(self.root):
            for path in (partial / "tree", partial / "parts"):
                path.mkdir(mode=0o755, parents=True, exist_ok=True)
        return partial / "tree", partial / "parts"

    def publish(self, digest: str) -> None:
        """Give what was put together its name."""
        tree, _ = self.building(digest)
        with disk_problems(self.root):
            for directory, _, _ in os.walk(tree):
                _sync(Path(directory))
            tree.rename(self.model(digest))
            _sync(self.root)
            shutil.rmtree(self._partial(digest))

    def make_room(self, digest: str, size: int, in_use: Collection[str]) -> None:
        """Before ``size`` bytes are fetched for ``digest``: drop what nobody needs, longest unused first, until they
        fit. Raises DiskFull when they do not."""
        with disk_problems(self.root):
            present = _bytes(self._partial(digest))
            for other in [*self._droppable(digest, in_use), None]:
                free = shutil.disk_usage(self.root).free
                total = sum(_bytes(entry) for entry in self._models()) if self._max_bytes is not None else 0
                if size - present <= free and (self._max_bytes is None or total + size <= self._max_bytes):
                    return
                if other is not None:
                    self._drop(other)
        if size - present > free:
            message = f"the model has {size} bytes, the cache {self.root} has room for {free + present}"
            raise DiskFull(message, "make the volume of the model cache larger")
        # The bound is a wish, the model a need: whatever else is here is needed too.
        print(f"the cache now holds more than {self._max_bytes} bytes: every model in it is in use", flush=True)

    def drop_leftovers(self, now: float) -> None:
        """What processes left behind that died over a model nobody has asked for since."""
        with disk_problems(self.root):
            for entry in self.root.glob(".*.partial"):
                digest = entry.name[1:].removesuffix(".partial")
                if now - self._last_asked(digest) > KEEP_S:
                    self._drop(digest)

    def _partial(self, digest: str) -> Path:
        return self.root / f".{digest}.partial"

    def _models(self) -> list[Path]:
        return [entry for entry in self.root.iterdir() if entry.is_dir() and not entry.name.startswith(".")]

    def _droppable(self, digest: str, in_use: Collection[str]) -> list[str]:
        found = []
        for entry in self.root.iterdir():
            match = _LOCK.fullmatch(entry.name)
            if match and match[1] != digest and match[1] not in in_use and self.model(match[1]).is_dir():
                age = time.time() - self._last_asked(match[1])
                if age > KEEP_S:
                    found.append((-age, match[1]))
        return [name for _, name in sorted(found)]

    def _last_asked(self, digest: str) -> float:
        """0 when it never was."""
        try:
            return (self.root / f"{digest}.lock").stat().st_mtime
        except FileNotFoundError:
            return 0.0

    def _drop(self, digest: str) -> None:
        """Unless somebody holds its lock. The lock's file stays: others may be waiting on it."""
        descriptor = self._open_lock(digest)
        try:
            if _try_lock(descriptor) and time.time() - self._last_asked(digest) > KEEP_S:
                print(f"dropping {digest} from the cache: nothing uses it", flush=True)
                partial = self._partial(digest)
                if partial.exists():
                    shutil.rmtree(partial)
                if self.model(digest).exists():
                    # Out of sight first, so that nobody ever starts on half a model.
                    self.model(digest).rename(partial)
                    shutil.rmtree(partial)
        finally:
            os.close(descriptor)

    def _open_lock(self, digest: str) -> int:
        # Writable, as a network file system locks nothing else exclusively.
        return os.open(self.root / f"{digest}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)


def size_of(model: Path) -> int:
    """Bytes of all files."""
    with disk_problems(model):
        return _bytes(model)


def _bytes(directory: Path) -> int:
    return sum(os.lstat(os.path.join(place, name)).st_size for place, _, names in os.walk(directory) for name in names)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
