"""Bytes on their way into the model store, and the disk that they wait on.

Decides how a body becomes a checked local file, and how a disk's errors become ours. Where the file goes when it is
complete is the business of whoever adopts it (``content``). Must not know paths that users chose.
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
#: Written to the disk in the background as soon as that much has come.
_SYNC_BYTES = 8 * 1024 * 1024
#: Hashed in another thread while they are written: less is not worth it.
_BESIDE_BYTES = CHUNK
#: The last one: this process may not write files that large.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

#: Takes a complete file away, to be kept under a name: the digest of content, or the name of a block.
Adopt = Callable[[Path, str], None]


class Scratch:
    """Where one control plane builds things, below a directory of its own (0700): ``temporary`` for what is not
    complete, ``repositories`` for what the local runtime serves from."""

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
    """Bytes on their way, from one thread at a time. A context manager: it aborts what is not finished.

    Hashing takes longer than writing: ``hash_as`` says before the first byte which hashes will be asked for.
    """

    def __init__(self, temporary: Path, max_bytes: int, adopt: Adopt, adopt_block: Adopt) -> None:
        self._directory, self._max_bytes = temporary, max_bytes
        self._adopt, self._adopt_block = adopt, adopt_block
        self._path = temporary_name(temporary)
        self._sha256, self._md5 = hashlib.sha256(), hashlib.md5(usedforsecurity=False)
        self._hashes = [self._sha256, self._md5]
        self._hasher = ThreadPoolExecutor(1, "hashing")
        self.size = self._syncing = 0
        with disk_errors(temporary):
            self._file = open(self._path, "xb", opener=_private)  # noqa: SIM115 - closed by finish and abort

    def hash_as(self, *, block: bool, md5: bool) -> None:
        """``block``: it will be finished as one, which has no digest. ``md5``: one will be expected."""
        self._hashes = [*([] if block else [self._sha256]), *([self._md5] if md5 else [])]

    def write(self, *pieces: bytes | bytearray) -> None:
        """Raises Error RequestTooLarge (the file is), RuntimeUnavailable (the disk is full); both abort."""
        size = sum(len(data) for data in pieces)
        self.size += size
        if self.size > self._max_bytes:
            self.abort()
            raise too_large(self._max_bytes, self.size)
        beside = self._hasher.submit(self._hash, pieces) if size >= _BESIDE_BYTES and self._hashes else None
        with self._aborting():
            try:
                for data in pieces:
                    self._file.write(data)
            finally:
                if beside is None:
                    self._hash(pieces)
                else:
                    beside.result()
        self._begin_syncing()

    def finish(self, expected_md5: bytes | None = None) -> tuple[str, int]:
        """Put the content in its place: (SHA-256 in hexadecimal digits, size in bytes).

        ``expected_md5``: the 16 bytes that ``Content-MD5`` promised. Raises Error Md5Mismatch, RuntimeUnavailable;
        both abort.
        """
        digest = self._sha256.hexdigest()
        self._complete(expected_md5, self._adopt, digest)
        return digest, self.size

    def finish_as_block(self, name: str, expected_md5: bytes | None = None) -> None:
        """Keep it as the block of that name instead, as :meth:`finish` otherwise."""
        self._complete(expected_md5, self._adopt_block, name)

    def abort(self) -> None:
        """Drop what was written; nothing happens after ``finish``."""
        self._hasher.shutdown()
        with suppress(OSError):  # A full disk fails once more when what is buffered is written on close.
            self._file.close()
        self._path.unlink(missing_ok=True)

    def __enter__(self) -> Upload:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abort()

    def _complete(self, expected_md5: bytes | None, adopt: Adopt, name: str) -> None:
        if expected_md5 is not None and self._md5.digest() != expected_md5:
            self.abort()
            raise Error(
                "Md5Mismatch",
                f"the body has MD5 {self._md5.hexdigest()}, Content-MD5 says {expected_md5.hex()}",
                hint="send the file again",
            )
        self._hasher.shutdown()
        with self._aborting():
            self._file.close()
            adopt(self._path, name)

    def _hash(self, pieces: Iterable[bytes | bytearray]) -> None:
        for data in pieces:
            for hashed in self._hashes:
                hashed.update(data)

    def _begin_syncing(self) -> None:
        """Let the kernel write to the disk what is complete here, so that the end needs not wait for all of it."""
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
    """``size``: bytes of a file, as far as they are known."""
    message = f"a file may have {limit} bytes (file_bytes), this one has at least {size}"
    return Error("RequestTooLarge", message, hint="start the control plane with a larger ML_LIMIT_FILE_BYTES")


class Chunks:
    """The bytes of something that is open, piece by piece. It lets go of it at the end, or when it is closed before."""

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
        """From the thread that reads, or when it has ended."""
        self._close()


@contextmanager
def disk_errors(root: Path) -> Iterator[None]:
    """OSError -> Error RuntimeUnavailable, with what to do about a full disk."""
    try:
        yield
    except OSError as exc:
        full = exc.errno in _FULL
        message = "no space left for model files" if full else f"model files cannot be accessed: {exc.strerror or exc}"
        hint = "free space on that file system" if full else "look at the owner and mode of that directory"
        raise Error("RuntimeUnavailable", message, target=str(root), hint=hint) from exc


def temporary_name(directory: Path) -> Path:
    """A name that no other process takes either."""
    return directory / uuid.uuid4().hex


def remove_older(directory: Path, before: float) -> None:
    """Drop what was last written before that time. Somebody else may be at it too."""
    for leftover in directory.iterdir():
        with suppress(FileNotFoundError):
            if leftover.stat().st_mtime < before:
                remove_path(leftover)


def sync_file(path: Path) -> None:
    """Make what any process has written to a file durable."""
    _sync(path, os.O_RDONLY)


def sync_directory(path: Path) -> None:
    """Make the names in a directory as durable as the files behind them."""
    _sync(path, os.O_RDONLY | os.O_DIRECTORY)


def remove_path(path: Path) -> None:
    """Remove a file or a directory with all that is in it."""
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
