"""The files of a model on the user's disk.

Decides which files belong to it and the hash that names their content. Must not know where they go.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from amphitrite.cli.assets import ignore_files
from amphitrite.schemas.errors import Error

#: More than any Triton repository has; a larger number is a wrong directory, a home for instance.
MAX_FILES = 1_500
#: What a client library sends at once is copied for each TLS record of 16 KiB: larger ones cost more than they save.
_BLOCK = 256 * 1024
_READERS_MAX = 4


@dataclass(frozen=True, slots=True)
class LocalFile:
    """``relative``: with ``/``, below the model's directory; the file's name when the model is one file."""

    path: Path
    relative: str
    size: int


@dataclass(frozen=True, slots=True)
class LocalModel:
    """``files`` sorted by ``relative``. ``name``: the last part of the path, by which the upload is called."""

    name: str
    is_directory: bool
    files: tuple[LocalFile, ...]

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(file.size for file in self.files)


def read(path: Path) -> LocalModel:
    """The model at ``path``. Raises Error LocalFileError: nothing there, nothing in it, too much in it."""
    if not path.exists():
        raise Error("LocalFileError", f"No such file or directory: {path}", target=str(path))
    path = path.resolve()
    try:
        if path.is_file():
            return LocalModel(path.name, False, (LocalFile(path, path.name, path.stat().st_size),))
        files = sorted(_walk(path, path, ignore_files.read(path), ()), key=lambda file: file.relative)
    except OSError as exc:
        raise Error("LocalFileError", f"cannot read {exc.filename or path}: {exc.strerror}", target=str(path)) from exc
    if not files:
        message = f"Directory {path} is empty. path or local_path must be a non-empty directory."
        raise Error("LocalFileError", message, target=str(path))
    return LocalModel(path.name, True, tuple(files))


def _walk(
    root: Path, directory: Path, rules: tuple[ignore_files.Rule, ...], above: tuple[Path, ...]
) -> Iterator[LocalFile]:
    """Files below ``directory``; links are followed, a link to a directory above is refused."""
    real = directory.resolve()
    if real in above:
        raise Error("LocalFileError", f"{directory} is a link to a directory above it", target=str(directory))
    count = 0
    for entry in sorted(os.scandir(directory), key=lambda entry: entry.name):
        path = Path(entry.path)
        relative = path.relative_to(root).as_posix()
        is_directory = entry.is_dir()
        if ignore_files.is_ignored(rules, relative, directory=is_directory):
            continue
        found = _walk(root, path, rules, (*above, real)) if is_directory else iter([_file(path, relative)])
        for file in found:
            count += 1
            if count > MAX_FILES:
                raise Error(
                    "LocalFileError",
                    f"{root} has more than {MAX_FILES} files",
                    target=str(root),
                    hint="name the model's own directory, or leave files out with .amlignore",
                )
            yield file


def _file(path: Path, relative: str) -> LocalFile:
    if not path.is_file():
        raise Error("LocalFileError", f"{path} is neither a file nor a directory, or a link to nothing")
    return LocalFile(path, relative, path.stat().st_size)


@dataclass(frozen=True, slots=True)
class Contents:
    """``digest``: SHA-256 (64 hexadecimal digits) over every file's relative path, size and SHA-256. ``sha256``: of
    each file's content, by its relative path."""

    digest: str
    sha256: Mapping[str, str]


def contents(model: LocalModel) -> Contents:
    """Reads every file once, several at a time. Raises Error LocalFileError."""
    with ThreadPoolExecutor(min(os.cpu_count() or 1, _READERS_MAX)) as readers:
        found = list(readers.map(_sha256, (file.path for file in model.files)))
    digest = hashlib.sha256()
    for file, own in zip(model.files, found, strict=True):
        digest.update(f"{len(file.relative.encode())}:{file.relative}:{file.size}:{own}:".encode())
    return Contents(digest.hexdigest(), {file.relative: own for file, own in zip(model.files, found, strict=True)})


def blocks(path: Path, start: int = 0, length: int | None = None) -> Iterator[bytes]:
    """The content of a file, or ``length`` bytes from ``start``, in pieces. Raises Error LocalFileError."""
    with _local(path), path.open("rb", buffering=0) as stream:
        stream.seek(start)
        left = length
        while block := stream.read(_BLOCK if left is None else min(_BLOCK, left)):
            yield block
            left = None if left is None else left - len(block)


def _sha256(path: Path) -> str:
    digest, block = hashlib.sha256(), memoryview(bytearray(_BLOCK))
    with _local(path), path.open("rb", buffering=0) as stream:
        while size := stream.readinto(block):
            digest.update(block[:size])
    return digest.hexdigest()


@contextmanager
def _local(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise Error("LocalFileError", f"cannot read {path}: {exc.strerror}", target=str(path)) from exc
