"""Content in a directory: on this machine, or on a volume that several control planes mount.

Decides that content is a file ``blobs/sha256/ab/<digest>``, which appears by a rename after an
fsync, and whose modification time says when it was last stored. If two processes store or delete
the same content at once, the second rename or removal has the same effect. Must not know
references.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from io import BufferedReader
from pathlib import Path

from amphitrite.controlplane.store.content.content_store import Entry, damaged, is_digest, require_digest
from amphitrite.controlplane.store.content.spool import (
    CHUNK,
    Chunks,
    Upload,
    disk_errors,
    remove_older,
    sync_directory,
    sync_file,
)
from amphitrite.controlplane.store.content.verified_files import VerifiedFiles

#: The errors of link(2) where hard links are impossible: another file system, not supported, too
#: many.
_NO_LINK = (errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK)


class ContentDirectory:
    """Implements ``content_store.Content``. All directories have mode 0700.

    ``clock``: seconds since the epoch. If ``link`` is impossible, files are copied.
    """

    def __init__(self, root: Path, clock: Callable[[], float], link: Callable[[Path, Path], None] = os.link) -> None:
        self.root, self._clock, self._link = root, clock, link
        self.verified = VerifiedFiles()
        self.temporary = root / "temporary"
        self.blocks = root / "blocks"
        self._blobs = root / "blobs" / "sha256"
        with disk_errors(root):
            for directory in (root, self.temporary, self.blocks, self._blobs.parent, self._blobs):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    @property
    def place(self) -> str:
        return str(self.root)

    def path(self, digest: str) -> Path:
        """The path of the content's file."""
        return self._blobs / require_digest(digest)[:2] / digest

    def begin(self, max_bytes: int) -> Upload:
        return Upload(self.temporary, max_bytes, self._persist, self._persist_block)

    def size(self, digest: str) -> int | None:
        with disk_errors(self.root):
            try:
                status = self.path(digest).lstat()
            except FileNotFoundError:
                return None
            return status.st_size if stat.S_ISREG(status.st_mode) else None

    def intact(self, digest: str) -> bool:
        with disk_errors(self.root):
            try:
                return self.verified.path_holds(self.path(digest), digest)
            except OSError as exc:
                if exc.errno not in (errno.ELOOP, errno.EIO):
                    raise
                return False

    def read(self, digest: str, first: int, end: int, *, verified: bool = True) -> Chunks:
        file = self._open(self.path(digest))
        try:
            if verified:
                self._require_intact(file, digest)
        except BaseException:
            file.close()
            raise
        return self._chunks(file, first, end)

    def forget_cached(self, digest: str) -> None:
        with suppress(LookupError), self._open(self.path(digest)) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def lay_out(self, digest: str, target: Path) -> None:
        content = self.path(digest)
        with self._open(content) as file:
            self._require_intact(file, digest)
        with disk_errors(self.root):
            try:
                self._link(content, target)
            except FileNotFoundError:
                raise LookupError(digest) from None
            except OSError as exc:
                if exc.errno not in _NO_LINK:
                    raise
                shutil.copyfile(content, target)
                target.chmod(0o444)
                if not self.verified.path_holds(target, digest):
                    raise damaged(digest, str(target)) from None
            # The new link is a change of the file, but not of its content.
            self.verified.remember(target, digest)

    def url(self, digest: str, seconds: int) -> str | None:
        return None

    def digests(self) -> Iterator[str]:
        with disk_errors(self.root):
            for directory in sorted(self._blobs.iterdir()):
                for file in sorted(directory.iterdir()):
                    if is_digest(file.name):
                        yield file.name

    def entries(self) -> Iterator[Entry]:
        for digest in self.digests():
            yield from _entry(self.path(digest))

    def unfinished(self) -> Iterator[Entry]:
        with disk_errors(self.root):
            for file in (*self.temporary.iterdir(), *self.blocks.iterdir()):
                yield from _entry(file)

    def discard_older(self, digest: str, before: float) -> bool:
        path = self.path(digest)
        with disk_errors(self.root):
            try:
                if path.stat().st_mtime >= before:
                    return False
                path.unlink()
            except FileNotFoundError:
                return False
            return True

    def read_block(self, name: str) -> Chunks:
        return self._chunks(self._open(self.blocks / name), 0, None)

    def drop_blocks(self, names: Iterable[str]) -> None:
        with disk_errors(self.root):
            for name in names:
                (self.blocks / name).unlink(missing_ok=True)

    def drop_unfinished(self, before: float, blocks: Collection[str]) -> None:
        with disk_errors(self.root):
            remove_older(self.temporary, before)
            for file in self.blocks.iterdir():
                with suppress(FileNotFoundError):
                    if file.name not in blocks and file.stat().st_mtime < before:
                        file.unlink()

    def _persist(self, temporary: Path, digest: str) -> None:
        final = self.path(digest)
        final.parent.mkdir(mode=0o700, exist_ok=True)
        now = self._clock()
        if not (self.intact(digest) and self._touch(final, now)):
            # It is missing or damaged. The file is new and read-only before anybody sees it:
            # repositories have hard links to it.
            sync_file(temporary)
            os.utime(temporary, (now, now))
            temporary.chmod(0o444)
            temporary.rename(final)
        temporary.unlink(missing_ok=True)
        # The upload has just been hashed.
        with suppress(FileNotFoundError):
            self.verified.remember(final, digest)
        sync_directory(final.parent)
        sync_directory(self._blobs)

    @staticmethod
    def _touch(path: Path, now: float) -> bool:
        """Makes the content young. False if it was deleted meanwhile."""
        try:
            os.utime(path, (now, now))
        except FileNotFoundError:
            return False
        return True

    def _require_intact(self, file: BufferedReader, digest: str) -> None:
        with disk_errors(self.root):
            if not self.verified.holds(file.fileno(), digest):
                raise damaged(digest, file.name)

    def _persist_block(self, temporary: Path, name: str) -> None:
        sync_file(temporary)
        temporary.rename(self.blocks / name)
        sync_directory(self.blocks)

    def _open(self, path: Path) -> BufferedReader:
        with disk_errors(self.root):
            try:
                return open(path, "rb", opener=_no_link)
            except FileNotFoundError:
                raise LookupError(path.name) from None
            except OSError as exc:
                if exc.errno != errno.ELOOP:
                    raise
                # The store creates no symbolic links. Somebody else did, and its target is not
                # content.
                raise LookupError(path.name) from None

    def _chunks(self, file: BufferedReader, first: int, end: int | None) -> Chunks:
        def pieces() -> Iterator[bytes]:
            with disk_errors(self.root):
                file.seek(first)
                left = CHUNK if end is None else end - first
                while left and (data := file.read(min(CHUNK, left))):
                    left -= len(data) if end is not None else 0
                    yield data

        return Chunks(pieces(), file.close)


def _entry(path: Path) -> Iterator[Entry]:
    """Nothing if the file is gone."""
    with suppress(FileNotFoundError):
        status = path.lstat()
        yield Entry(path.name, status.st_size, status.st_mtime)


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW)
