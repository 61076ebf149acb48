"""Which files on this machine hold the content that their digest names.

Decides when a file is hashed again: when its device, inode, size, or one of its times of change
differs from when it was last hashed. Must not know what the files are for.

The kernel sets the change time (ctime), and no program can choose it. So each write through the
file system is noticed. Not noticed are bytes that change without a write: on the disk itself, or in
memory. A new process hashes each file again when it first needs it, and ``ml server check`` hashes
everything from the disk.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from pathlib import Path

_CHUNK = 1024 * 1024
#: Nanoseconds. Two changes within one step of a file system's clock have the same time, so a file
#: that has just changed is hashed again the next time. FAT has the longest steps.
_CLOCK_STEP = 2_000_000_000
#: The oldest is forgotten first.
_KNOWN_MAX = 100_000
#: Threads that need the same file wait for one of them to hash it.
_LOCKS = 64

_Identity = tuple[int, int, int, int, int]


class VerifiedFiles:
    """Thread-safe."""

    def __init__(self) -> None:
        self._known: dict[_Identity, str] = {}
        self._lock = threading.Lock()
        self._hashing = tuple(threading.Lock() for _ in range(_LOCKS))

    def holds(self, descriptor: int, digest: str) -> bool:
        """Whether an open file has this SHA-256. Raises OSError."""
        status = os.fstat(descriptor)
        with self._hashing[status.st_ino % _LOCKS]:
            now = time.time_ns()
            identity = _identity(os.fstat(descriptor))
            with self._lock:
                found = self._known.get(identity)
            if found is None:
                found = sha256(descriptor)
                # Unless it changed while it was hashed.
                if identity == _identity(os.fstat(descriptor)) and now - status.st_ctime_ns > _CLOCK_STEP:
                    self._remember(identity, found)
        return found == digest

    def path_holds(self, path: Path, digest: str) -> bool:
        """As ``holds``; also False if there is no such file."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return False
        try:
            return self.holds(descriptor, digest)
        finally:
            os.close(descriptor)

    def remember(self, path: Path, digest: str) -> None:
        """Notes a file that the caller has just written or checked. Raises OSError."""
        self._remember(_identity(path.lstat()), digest)

    def _remember(self, identity: _Identity, digest: str) -> None:
        with self._lock:
            self._known.pop(identity, None)
            while len(self._known) >= _KNOWN_MAX:
                del self._known[next(iter(self._known))]
            self._known[identity] = digest


def sha256(descriptor: int) -> str:
    """Of the whole file. The position of the descriptor stays. Raises OSError."""
    digest, at = hashlib.sha256(), 0
    while data := os.pread(descriptor, _CHUNK, at):
        digest.update(data)
        at += len(data)
    return digest.hexdigest()


def _identity(status: os.stat_result) -> _Identity:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
