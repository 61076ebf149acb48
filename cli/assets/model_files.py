"""The files of a model on this machine.

Decides which files belong to a model, and the hash of their content. Must not know where they are
sent.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from amphitrite.cli.assets import ignore_files
from amphitrite.schemas.errors import Error

#: More files than any Triton repository has. A directory with more is probably the wrong one, such
#: as a home directory.
MAX_FILES = 1_500
#: Bytes per read. The TLS library copies each block for every record of 16 KiB, so larger blocks
#: are slower.
_BLOCK = 256 * 1024
_READERS_MAX = 4
_REPORT_BYTES = 4 * 1024**2


@dataclass(frozen=True, slots=True)
class LocalFile:
    """``relative``: the path in the model's directory, with ``/``, or the name of a single file."""

    path: Path
    relative: str
    size: int


@dataclass(frozen=True, slots=True)
class LocalModel:
    """``files``: sorted by ``relative``.

    ``name``: the last part of the path, which is the name of the upload.
    """

    name: str
    is_directory: bool
    files: tuple[LocalFile, ...]

    @property
    def size(self) -> int:
        """Total bytes of all files."""
        return sum(file.size for file in self.files)


def read(path: Path) -> LocalModel:
    """The model at ``path``.

    Raises Error LocalFileError if it does not exist, is empty or has too many files.
    """
    if not path.exists():
        hint = None if path.is_absolute() else f"the path starts in the working directory, {Path.cwd()}"
        raise Error("LocalFileError", f"No such file or directory: {path}", target=str(path), hint=hint)
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
    """Files below ``directory``. Links are followed; a link to a directory above is refused."""
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
        files = _walk(root, path, rules, (*above, real)) if is_directory else iter([_file(path, relative)])
        for file in files:
            count += 1
            if count > MAX_FILES:
                raise Error(
                    "LocalFileError",
                    f"{root} has too many files; allowed: {MAX_FILES}",
                    target=str(root),
                    hint="use the directory of the model itself, or exclude files with .amlignore",
                )
            yield file


def _file(path: Path, relative: str) -> LocalFile:
    if not path.is_file():
        raise Error("LocalFileError", f"{path} is neither a file nor a directory, or is a broken link")
    return LocalFile(path, relative, path.stat().st_size)


@dataclass(frozen=True, slots=True)
class Contents:
    """Hashes of the files, as 64 hexadecimal digits.

    ``digest``: SHA-256 over the relative path, size and SHA-256 of every file. ``sha256``: relative
    path -> SHA-256 of the content.
    """

    digest: str
    sha256: Mapping[str, str]


def contents(model: LocalModel, report: Callable[[int, int], None] = lambda done, total: None) -> Contents:
    """Hash every file, several at a time.

    ``report`` is called with the bytes that are read so far and all bytes, by several threads, but
    one at a time. Raises Error LocalFileError.
    """
    counter = _Counter(model.size, report)
    with ThreadPoolExecutor(min(os.cpu_count() or 1, _READERS_MAX)) as readers:
        hashes = list(readers.map(partial(_sha256, counter), (file.path for file in model.files)))
    digest = hashlib.sha256()
    for file, sha256 in zip(model.files, hashes, strict=True):
        digest.update(f"{len(file.relative.encode())}:{file.relative}:{file.size}:{sha256}:".encode())
    return Contents(
        digest.hexdigest(), {file.relative: sha256 for file, sha256 in zip(model.files, hashes, strict=True)}
    )


def blocks(path: Path, start: int = 0, length: int | None = None) -> Iterator[bytes]:
    """The content of a file, or ``length`` bytes from ``start``, in blocks.

    Raises Error LocalFileError.
    """
    with _local(path), path.open("rb", buffering=0) as stream:
        stream.seek(start)
        left = length
        while block := stream.read(_BLOCK if left is None else min(_BLOCK, left)):
            yield block
            left = None if left is None else left - len(block)


class _Counter:
    """Counts the bytes that several threads read, and reports each ``_REPORT_BYTES``."""

    def __init__(self, total: int, report: Callable[[int, int], None]) -> None:
        self._total, self._report = total, report
        self._done = self._reported = 0
        self._lock = threading.Lock()
        report(0, total)

    def add(self, size: int) -> None:
        with self._lock:
            self._done += size
            if self._done - self._reported >= _REPORT_BYTES:
                self._reported = self._done
                self._report(self._done, self._total)


def _sha256(counter: _Counter, path: Path) -> str:
    digest, block = hashlib.sha256(), memoryview(bytearray(_BLOCK))
    with _local(path), path.open("rb", buffering=0) as stream:
        while size := stream.readinto(block):
            digest.update(block[:size])
            counter.add(size)
    return digest.hexdigest()


@contextmanager
def _local(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise Error("LocalFileError", f"cannot read {path}: {exc.strerror}", target=str(path)) from exc
