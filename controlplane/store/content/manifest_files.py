"""The files of a manifest, for checks that read small parts of them.

Decides how a manifest becomes a list of readable files, and how much of one file is fetched at
most. Must not know what is read or why.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import BinaryIO, cast

from amphitrite.controlplane.store.content.content_store import Content
from amphitrite.controlplane.store.content.manifests import File
from amphitrite.schemas.repository.files.file_listing import TooMuch

#: Bytes of one fetch: most of the files that are checked are smaller.
_WINDOW = 256 * 1024
#: The maximum number of fetches from one file; each may be a request to an object store.
_WINDOWS_MAX = 2_000


class StoredFiles:
    """Implements ``schemas.repository.files.Repository`` on the content store."""

    def __init__(self, content: Content, manifest: Sequence[File]) -> None:
        self._content = content
        self._files = {file.path: file for file in manifest}

    @property
    def sizes(self) -> Mapping[str, int]:
        return {path: file.size for path, file in self._files.items()}

    @property
    def directories(self) -> frozenset[str]:
        return frozenset()

    def open(self, path: str) -> BinaryIO:
        """Raises OSError if the content is missing; reads raise it too, and TooMuch."""
        file = self._files[path]
        return cast(BinaryIO, _WindowedFile(self._content, file))


class _WindowedFile(io.RawIOBase):
    """One file, with one window of it in memory."""

    def __init__(self, content: Content, file: File) -> None:
        self._content, self._file = content, file
        self._at, self._start, self._window = 0, 0, b""
        self._left = _WINDOWS_MAX

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._file.size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def read(self, size: int = -1) -> bytes:
        end = self._file.size if size < 0 else min(self._at + size, self._file.size)
        data = bytearray()
        while self._at < end:
            if not self._start <= self._at < self._start + len(self._window):
                self._fetch()
            first = self._at - self._start
            piece = self._window[first : first + end - self._at]
            data += piece
            self._at += len(piece)
        return bytes(data)

    def _fetch(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise TooMuch
        self._start = self._at
        last = min(self._at + _WINDOW, self._file.size)
        try:
            self._window = b"".join(self._content.read(self._file.digest, self._at, last))
        except LookupError as exc:
            raise OSError(f"the content of {self._file.path} is missing") from exc
        if not self._window:
            raise OSError(f"the content of {self._file.path} is truncated")
