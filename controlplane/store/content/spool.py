"""Spooling: bytes on their way into the content store, on a local disk.

Decides how a body becomes a verified local file, and how disk errors become ours. The content store
decides where the complete file goes. Must not know paths that users chose.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

from amphitrite.schemas.errors import Error

CHUNK = 1024 * 1024
#: Bytes after which the kernel is asked to write to the disk in the background.
_SYNC_BYTES = 8 * 1024 * 1024
#: Bytes from which hashing runs in another thread; for less it is not worth it.
_BACKGROUND_HASH_BYTES = CHUNK
#: Errors of a full disk. EFBIG: the process may not write files of this size.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

#: Takes over a complete file under a name: the digest of content, or the name of a block.
Persist = Callable[[Path, str], None]


class Scratch:
    """The working directory of one control plane, with mode 0700.

    ``temporary``: incomplete files. ``repositories``: what the local runtime serves.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.temporary = root / "temporary"
        self.repositories = root / "repositories"
        with disk_errors(root):
            for directory in (root, self.temporary, self.repositories):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def temporary_name(self) -> Path:
        return temporary_name(self.temporary)


class Upload:
    """Bytes on their way, from one thread at a time. As a context manager it aborts what is not
    finished.

    Hashing takes longer than writing: ``hash_as`` selects the hashes before the first byte.
    """

    def __init__(self, temporary: Path, max_bytes: int, persist: Persist, persist_block: Persist) -> None:
        self._directory, self._max_bytes = temporary, max_bytes
        self._persist, self._persist_block = persist, persist_block
        self._path = temporary_name(temporary)
        self._sha256, self._md5 = hashlib.sha256(), hashlib.md5(usedforsecurity=False)
        self._hashes = [self._sha256, self._md5]
        self._hasher = ThreadPoolExecutor(1, "hashing")
        self.size = self._syncing = 0
        with disk_errors(temporary):
            self._file = open(self._path, "xb", opener=_private)  # noqa: SIM115 - closed by finish and abort

    def hash_as(self, *, block: bool, md5: bool) -> None:
        """``block``: it will be finished as a block, which has no digest. ``md5``: an MD5 will be
        expected."""
        self._hashes = [*([] if block else [self._sha256]), *([self._md5] if md5 else [])]

    def write(self, *pieces: bytes | bytearray) -> None:
        """Raises Error RequestTooLarge (the file) or RuntimeUnavailable (full disk); both abort the
        upload."""
        size = sum(len(data) for data in pieces)
        self.size += size
        if self.size > self._max_bytes:
            self.abort()
            raise too_large(self._max_bytes, self.size)
        background = (
            self._hasher.submit(self._hash, pieces) if size >= _BACKGROUND_HASH_BYTES and self._hashes else None
        )
        with self._aborting():
            try:
                for data in pieces:
                    self._file.write(data)
            finally:
                if background is None:
                    self._hash(pieces)
                else:
                    background.result()
        self._begin_syncing()

    def finish(self, expected_md5: bytes | None = None) -> tuple[str, int]:
        """Stores the content. Returns its SHA-256 in hexadecimal digits and its size in bytes.

        ``expected_md5``: the 16 bytes of the header ``Content-MD5``. Raises Error Md5Mismatch or
        RuntimeUnavailable; both abort the upload.
        """
        digest = self._sha256.hexdigest()
        self._complete(expected_md5, self._persist, digest)
        return digest, self.size

    def finish_as_block(self, name: str, expected_md5: bytes | None = None) -> None:
        """Stores it as the block ``name``; otherwise as :meth:`finish`."""
        self._complete(expected_md5, self._persist_block, name)

    def abort(self) -> None:
        """Deletes what was written. Has no effect after ``finish``."""
        self._hasher.shutdown()
        with suppress(OSError):  # A full disk fails again when close writes the buffer.
            self._file.close()
        self._path.unlink(missing_ok=True)

    def __enter__(self) -> Upload:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abort()

    def _complete(self, expected_md5: bytes | None, persist: Persist, name: str) -> None:
        if expected_md5 is not None and self._md5.digest() != expected_md5:
            self.abort()
            raise Error(
                "Md5Mismatch",
                f"the body has MD5 {self._md5.hexdigest()}, but Content-MD5 is {expected_md5.hex()}",
                hint="send the file again",
            )
        self._hasher.shutdown()
        with self._aborting():
            self._file.close()
            persist(self._path, name)

    def _hash(self, pieces: Iterable[bytes | bytearray]) -> None:
        for data in pieces:
            for hashed in self._hashes:
                hashed.update(data)

    def _begin_syncing(self) -> None:
        """Starts writing complete data to the disk, so that finishing need not wait for
        all of it."""
        if self.size - self._syncing >= _SYNC_BYTES and hasattr(os, "posix_fadvise"):
            with self._aborting():
                self._file.flush()
                os.posix_fadvise(self._file.fileno(), self._syncing, self.size - self._syncing, os.POSIX_FADV_DONTNEED)
            self._syncing = self.size

    @contextmanager
    def _aborting(self) -> Iterator[None]:
        try:
            with disk_errors(self._directory):
                yield
        except BaseException:
            self.abort()
            raise


def too_large(limit: int, size: int) -> Error:
    """The error for a file above the limit. ``size``: bytes of the file that are known so far."""
    message = f"the file has at least {size} bytes; at most {limit} (file_bytes)"
    return Error("RequestTooLarge", message, hint="set a larger ML_LIMIT_FILE_BYTES and restart the control plane")


class Chunks:
    """The bytes of an open source, piece by piece. It is closed at the end, or by ``close``."""

    def __init__(self, pieces: Iterator[bytes], close: Callable[[], None]) -> None:
        self._pieces, self._close = pieces, close

    def __iter__(self) -> Chunks:
        return self

    def __next__(self) -> bytes:
        try:
            return next(self._pieces)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Call it from the reading thread, or after that has ended."""
        self._close()


@contextmanager
def disk_errors(root: Path) -> Iterator[None]:
    """Turns OSError into Error RuntimeUnavailable, with a hint."""
    try:
        yield
    except OSError as exc:
        full = exc.errno in _FULL
        message = "no space left for model files" if full else f"model files cannot be accessed: {exc.strerror or exc}"
        hint = "free space on this file system" if full else "check the owner and mode of the directory"
        raise Error("RuntimeUnavailable", message, target=str(root), hint=hint) from exc


def temporary_name(directory: Path) -> Path:
    """A unique name."""
    return directory / uuid.uuid4().hex


def remove_older(directory: Path, before: float) -> None:
    """Deletes files last written before ``before``. Other processes may do so at the same time."""
    for leftover in directory.iterdir():
        with suppress(FileNotFoundError):
            if leftover.stat().st_mtime < before:
                remove_path(leftover)


def sync_file(path: Path) -> None:
    """Makes the file durable, whichever process wrote it."""
    _sync(path, os.O_RDONLY)


def sync_directory(path: Path) -> None:
    """Makes the names in a directory durable."""
    _sync(path, os.O_RDONLY | os.O_DIRECTORY)


def remove_path(path: Path) -> None:
    """Removes a file, or a directory and everything in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
