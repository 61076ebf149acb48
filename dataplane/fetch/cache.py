"""The node's cache: one directory for each model version, shared by all pods of the node.

Decides that ``<cache>/<digest>`` is complete or absent, that one process at a time makes it, and
what is removed when space is needed. Must not know how files arrive.

Beside the models are ``<digest>.lock``, whose time says when the model was last used, and
``.<digest>.partial``, which the next process that needs this model continues.

A model may be removed when no deployment uses it (the control plane says so in its list of files)
*and* nobody on this node has used it for a day. The first condition keeps what a running pod may
load again when its container restarts, which starts no fetcher. The second keeps what has come into
use since the list was made. A cache therefore belongs to one control plane.
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

from amphitrite.dataplane.fetch.fetch_failure import DiskFull, disk_failures

#: Seconds for which a model stays after its last use.
KEEP_S = 24 * 3600.0
_LOCK = re.compile(r"([0-9a-f]{64})\.lock")


class Cache:
    """``max_bytes``: the limit of all models together; None: that of the disk."""

    def __init__(self, root: Path, max_bytes: int | None = None) -> None:
        """Raises FetchFailure when the directory cannot be written."""
        self.root, self._max_bytes = root, max_bytes
        with disk_failures(root):
            root.mkdir(mode=0o755, parents=True, exist_ok=True)

    def model(self, digest: str) -> Path:
        return self.root / digest

    @contextmanager
    def locked(self, digest: str) -> Iterator[None]:
        """Nobody else makes or removes this model meanwhile. The kernel releases the lock when the
        process ends in any way."""
        with disk_failures(self.root):
            descriptor = self._open_lock(digest)
            try:
                if not _try_lock(descriptor):
                    print("another pod of this node is fetching this model; waiting for it", flush=True)
                    fcntl.flock(descriptor, fcntl.LOCK_EX)
                os.utime(descriptor)
                yield
            finally:
                os.close(descriptor)

    def staging(self, digest: str) -> tuple[Path, Path]:
        """Where the model is assembled, under its lock: (its tree, a directory for unfinished
        files). What a dead process left there is still there."""
        partial = self._partial(digest)
        with disk_failures(self.root):
            for path in (partial / "tree", partial / "parts"):
                path.mkdir(mode=0o755, parents=True, exist_ok=True)
        return partial / "tree", partial / "parts"

    def publish(self, digest: str) -> None:
        """Give the assembled model its name."""
        tree, _ = self.staging(digest)
        with disk_failures(self.root):
            for directory, _, _ in os.walk(tree):
                _sync(Path(directory))
            tree.rename(self.model(digest))
            _sync(self.root)
            shutil.rmtree(self._partial(digest))

    def free_space(self, digest: str, size: int, in_use: Collection[str]) -> None:
        """Make space for ``size`` bytes of ``digest``: remove what nobody needs, longest unused
        first, until they fit. Raises DiskFull when they do not."""
        with disk_failures(self.root):
            present = _bytes(self._partial(digest))
            for other in [*self._removable(digest, in_use), None]:
                free = shutil.disk_usage(self.root).free
                total = sum(_bytes(entry) for entry in self._models()) if self._max_bytes is not None else 0
                if size - present <= free and (self._max_bytes is None or total + size <= self._max_bytes):
                    return
                if other is not None:
                    self._remove(other)
        if size - present > free:
            message = f"the model has {size} bytes, the cache {self.root} has room for {free + present}"
            raise DiskFull(message, "make the volume of the model cache larger")
        # The limit of the cache yields to the model: everything else here is needed too.
        print(f"the cache now holds more than {self._max_bytes} bytes: every model in it is in use", flush=True)

    def remove_abandoned(self, now: float) -> None:
        """Remove what processes left behind that died, of models that nobody has used since.
        ``now``: seconds since the epoch."""
        with disk_failures(self.root):
            for entry in self.root.glob(".*.partial"):
                digest = entry.name[1:].removesuffix(".partial")
                if now - self._last_used(digest) > KEEP_S:
                    self._remove(digest)

    def _partial(self, digest: str) -> Path:
        return self.root / f".{digest}.partial"

    def _models(self) -> list[Path]:
        return [entry for entry in self.root.iterdir() if entry.is_dir() and not entry.name.startswith(".")]

    def _removable(self, digest: str, in_use: Collection[str]) -> list[str]:
        removable = []
        for entry in self.root.iterdir():
            match = _LOCK.fullmatch(entry.name)
            if match and match[1] != digest and match[1] not in in_use and self.model(match[1]).is_dir():
                age = time.time() - self._last_used(match[1])
                if age > KEEP_S:
                    removable.append((-age, match[1]))
        return [name for _, name in sorted(removable)]

    def _last_used(self, digest: str) -> float:
        """Seconds since the epoch; 0: never."""
        try:
            return (self.root / f"{digest}.lock").stat().st_mtime
        except FileNotFoundError:
            return 0.0

    def _remove(self, digest: str) -> None:
        """Remove a model unless somebody holds its lock. The lock's file stays: others may wait for
        it."""
        descriptor = self._open_lock(digest)
        try:
            if _try_lock(descriptor) and time.time() - self._last_used(digest) > KEEP_S:
                print(f"removing {digest} from the cache: nothing uses it", flush=True)
                partial = self._partial(digest)
                if partial.exists():
                    shutil.rmtree(partial)
                if self.model(digest).exists():
                    # It loses its name first, so that nobody ever loads half a model.
                    self.model(digest).rename(partial)
                    shutil.rmtree(partial)
        finally:
            os.close(descriptor)

    def _open_lock(self, digest: str) -> int:
        # Opened for writing: a network file system has no other exclusive locks.
        return os.open(self.root / f"{digest}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)


def size_of(model: Path) -> int:
    """The bytes of all files."""
    with disk_failures(model):
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
