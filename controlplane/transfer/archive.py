"""An archive: many files and a manifest in one tar file.

Decides that an archive appears complete or not at all, readable by its owner only, and that a
damaged archive is not read. Must not know what the files are for.

Layout: the files in the order in which they were added, then ``manifest.json`` with the writer's
fields, and under ``entries`` the name, size in bytes and SHA-256 of every file. It has its own
SHA-256 too.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import tarfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from amphitrite.schemas.errors import Error
from amphitrite.schemas.sealed_json import seal, unseal

MANIFEST = "manifest.json"
CHUNK = 1024 * 1024
#: The maximum bytes of a manifest: enough for far more than 100,000 files.
_MANIFEST_MAX = 64 * 1024**2
_NAME = re.compile(r"[a-z]+/[A-Za-z0-9_][A-Za-z0-9_.-]*")


class Writer:
    """See ``create``."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._entries: dict[str, dict[str, Any]] = {}

    def add(self, name: str, size: int, chunks: Iterable[bytes]) -> str:
        """``name``: ``directory/file``. Returns the SHA-256 of what was added. Raises Error
        RuntimeUnavailable if there are more or fewer bytes than ``size``."""
        if not _NAME.fullmatch(name):
            raise ValueError(f"not a name in an archive: {name!r}")
        stream = _Chunks(chunks)
        info = _private(name, size)
        try:
            self._tar.addfile(info, stream)
        except OSError as exc:
            if stream.ended:
                raise _changed(name) from exc
            raise
        if stream.read(1):
            raise _changed(name)
        self._entries[name] = {"size": size, "sha256": stream.sha256.hexdigest()}
        return stream.sha256.hexdigest()

    def add_bytes(self, name: str, data: bytes) -> None:
        self.add(name, len(data), (data,))

    def close(self, manifest: Mapping[str, Any]) -> None:
        data = seal(json.dumps({**manifest, "entries": self._entries}, indent=1)).encode()
        self._tar.addfile(_private(MANIFEST, len(data)), io.BytesIO(data))


@contextmanager
def create(path: Path, manifest: Callable[[], Mapping[str, Any]]) -> Iterator[Writer]:
    """A new archive at ``path``, which appears when the block ends. ``manifest`` then returns the
    fields of the manifest.

    Raises Error LocalFileError (the file exists or cannot be written).
    """
    if path.exists():
        raise Error("LocalFileError", f"{path} already exists", hint="use another file name, or remove that file")
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with _file_errors(path):
            with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags | os.O_CLOEXEC, 0o600)) as file:
                with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
                    writer = Writer(tar)
                    yield writer
                    writer.close(manifest())
                file.flush()
                os.fsync(file.fileno())
            # link(2) fails if the name exists, which rename(2) does not.
            os.link(temporary, path)
            _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


class Reader:
    """An archive whose files all match its manifest."""

    def __init__(self, path: Path, tar: tarfile.TarFile) -> None:
        self._path, self._tar = path, tar
        self.manifest = self._manifest()
        self._check()

    @property
    def names(self) -> list[str]:
        """All files, in the order in which they were added."""
        return list(self.manifest["entries"])

    def sha256(self, name: str) -> str:
        return str(self.manifest["entries"][name]["sha256"])

    def size(self, name: str) -> int:
        return int(self.manifest["entries"][name]["size"])

    def read(self, name: str) -> Iterator[bytes]:
        """Raises KeyError if there is no such file."""
        file = self._open(name)
        with file:
            while data := file.read(CHUNK):
                yield data

    def lines(self, name: str) -> Iterator[bytes]:
        with self._open(name) as file:
            yield from file

    def _open(self, name: str) -> IO[bytes]:
        file = self._tar.extractfile(self._members[name])
        if file is None:
            raise self._damaged(f"{name} is not a file")
        return file

    def _manifest(self) -> dict[str, Any]:
        self._members = {member.name: member for member in self._tar.getmembers()}
        member = self._members.get(MANIFEST)
        if member is None or member.size > _MANIFEST_MAX:
            raise self._damaged(f"it has no {MANIFEST}, so it is not a complete backup")
        with self._open(MANIFEST) as file:
            manifest = unseal(file.read().decode())
        if not isinstance(manifest, dict) or not isinstance(manifest.get("entries"), dict):
            raise self._damaged(f"its {MANIFEST} lists no entries")
        return manifest

    def _check(self) -> None:
        entries = self.manifest["entries"]
        invalid = [name for name in entries if not _NAME.fullmatch(name)]
        if invalid or set(entries) != set(self._members) - {MANIFEST}:
            raise self._damaged(f"its files differ from the list in its {MANIFEST}")
        for name, entry in entries.items():
            sha256 = hashlib.sha256()
            for data in self.read(name):
                sha256.update(data)
            if self._members[name].size != entry.get("size") or sha256.hexdigest() != entry.get("sha256"):
                raise self._damaged(f"the content of {name} has changed")

    def _damaged(self, message: str) -> Error:
        return Error("LocalFileError", f"{self._path} is damaged: {message}", hint="use another backup")


@contextmanager
def open_archive(path: Path) -> Iterator[Reader]:
    """Raises Error LocalFileError if the archive cannot be read or is damaged."""
    damaged = f"{path} is damaged or not a backup"
    with _file_errors(path):
        try:
            tar = tarfile.open(path, "r:")  # noqa: SIM115 - closed below
        except tarfile.TarError as exc:
            raise Error("LocalFileError", damaged, hint="use another backup") from exc
        with tar:
            try:
                reader = Reader(path, tar)
            except (tarfile.TarError, ValueError, EOFError) as exc:
                raise Error("LocalFileError", damaged, hint="use another backup") from exc
            yield reader


class _Chunks:
    """A file-like object that reads from chunks of any length."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._rest = b""
        self.ended = False
        self.sha256 = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        parts, remaining = [], size
        while remaining:
            if not self._rest:
                data = next(self._chunks, None)
                if data is None:
                    self.ended = True
                    break
                self._rest = data
            part = self._rest[:remaining]
            self._rest = self._rest[len(part) :]
            parts.append(part)
            remaining -= len(part)
        data = b"".join(parts)
        self.sha256.update(data)
        return data


def _private(name: str, size: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o600
    return info


def _changed(name: str) -> Error:
    message = f"{name} changed while it was read, or is damaged"
    return Error("RuntimeUnavailable", message, target=name, hint="try again")


@contextmanager
def _file_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise Error("LocalFileError", f"{path}: {exc.strerror or exc}") from exc


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
