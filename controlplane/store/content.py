"""Files of the model store, named by what is in them.

Decides how bytes become a file that is either complete and on the disk or not there: written below ``temporary/``,
fsync, rename to ``blobs/sha256/ab/<digest>``, fsync of the directory. Must not know paths that users chose.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

from amphitrite.schemas.errors import Error

_DIGEST = re.compile(r"[0-9a-f]{64}")
_FULL = (errno.ENOSPC, errno.EDQUOT)


class ContentFiles:
    """The directories of one model store, all 0700. Thread-safe; ``clock`` gives seconds since the epoch."""

    def __init__(self, root: Path, clock: Callable[[], float]) -> None:
        self.root, self.clock = root, clock
        self.temporary = root / "temporary"
        self.blocks = root / "blocks"
        self.repositories = root / "repositories"
        self._blobs = root / "blobs" / "sha256"
        self._lock = threading.Lock()
        with disk_errors(root):
            for directory in (root, self.temporary, self.blocks, self.repositories, self._blobs.parent, self._blobs):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def begin(self, max_bytes: int) -> Upload:
        return Upload(self, max_bytes)

    def path(self, digest: str) -> Path:
        """Where the content with this SHA-256 (64 hexadecimal digits) lies. Raises ValueError for anything else."""
        if not _DIGEST.fullmatch(digest):
            raise ValueError(f"not a SHA-256: {digest!r}")
        return self._blobs / digest[:2] / digest

    def adopt(self, temporary: Path, digest: str) -> None:
        """Give a complete file, already fsynced, its name. Content that is there already becomes young again, so that
        garbage collection leaves it to the caller to refer to it."""
        final = self.path(digest)
        with self._lock:
            final.parent.mkdir(mode=0o700, exist_ok=True)
            if final.exists():
                temporary.unlink()
            else:
                # Read-only: instances get hard links to this very file.
                temporary.chmod(0o444)
                temporary.rename(final)
            os.utime(final, (self.clock(), self.clock()))
        sync_directory(final.parent)
        sync_directory(self._blobs)

    def discard_older(self, digest: str, before: float) -> bool:
        """Drop content that was last adopted before that time; whether it is gone."""
        path = self.path(digest)
        with self._lock:
            if path.stat().st_mtime >= before:
                return False
            path.unlink()
            return True

    def digests(self) -> Iterator[str]:
        """Of all content there is."""
        for directory in sorted(self._blobs.iterdir()):
            for file in sorted(directory.iterdir()):
                if _DIGEST.fullmatch(file.name):
                    yield file.name

    def temporary_name(self) -> Path:
        return self.temporary / uuid.uuid4().hex


class Upload:
    """Bytes on their way to the disk, from one thread at a time. A context manager: it aborts what is not finished."""

    def __init__(self, files: ContentFiles, max_bytes: int) -> None:
        self._files, self._max_bytes = files, max_bytes
        self._path = files.temporary_name()
        self._sha256, self._md5 = hashlib.sha256(), hashlib.md5(usedforsecurity=False)
        self.size = 0
        with disk_errors(files.root):
            self._file = open(self._path, "xb", opener=_private)  # noqa: SIM115 - closed by finish and abort

    def write(self, data: bytes) -> None:
        """Raises Error LimitExceeded (the file is too large), RuntimeUnavailable (the disk is full); both abort."""
        self.size += len(data)
        if self.size > self._max_bytes:
            self.abort()
            raise Error(
                "LimitExceeded",
                f"a file may have {self._max_bytes} bytes (file_bytes), this one has at least {self.size}",
                hint="start the control plane with a larger ML_LIMIT_FILE_BYTES",
            )
        self._sha256.update(data)
        self._md5.update(data)
        with self._aborting():
            self._file.write(data)

    def finish(self, expected_md5: bytes | None = None) -> tuple[str, int]:
        """Put the content in its place: (SHA-256 in hexadecimal digits, size in bytes).

        ``expected_md5``: the 16 bytes that ``Content-MD5`` promised. Raises Error Md5Mismatch (and aborts).
        """
        self._complete(expected_md5)
        digest = self._sha256.hexdigest()
        with self._aborting():
            self._files.adopt(self._path, digest)
        return digest, self.size

    def finish_as(self, path: Path, expected_md5: bytes | None = None) -> None:
        """Put the file at ``path`` within the store instead, as :meth:`finish` otherwise."""
        self._complete(expected_md5)
        with self._aborting():
            self._path.rename(path)
            sync_directory(path.parent)

    def abort(self) -> None:
        """Drop what was written; nothing happens after ``finish``."""
        with suppress(OSError):  # A full disk fails once more when what is buffered is written on close.
            self._file.close()
        self._path.unlink(missing_ok=True)

    def __enter__(self) -> Upload:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abort()

    def _complete(self, expected_md5: bytes | None) -> None:
        if expected_md5 is not None and self._md5.digest() != expected_md5:
            self.abort()
            raise Error(
                "Md5Mismatch",
                f"the body has MD5 {self._md5.hexdigest()}, Content-MD5 says {expected_md5.hex()}",
                hint="send the file again",
            )
        with self._aborting():
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()

    @contextmanager
    def _aborting(self) -> Iterator[None]:
        try:
            with disk_errors(self._files.root):
                yield
        except BaseException:
            self.abort()
            raise


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


def sync_directory(path: Path) -> None:
    """Make the names in a directory as durable as the files behind them."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_path(path: Path) -> None:
    """Remove a file or a directory with all that is in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
