"""What the model store holds: uploads, content, parts of files, and repositories on this machine.

Decides which facts about them count as needed. Reads only. Must not know what becomes of anything
(``core.storage.garbage`` decides, ``garbage_collection`` deletes).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, select

from amphitrite.controlplane.core.storage import garbage
from amphitrite.controlplane.core.storage.garbage import StoredItem, UploadedFile, is_garbage
from amphitrite.controlplane.store.content.content_store import Content
from amphitrite.controlplane.store.content.spool import Scratch, disk_errors
from amphitrite.controlplane.store.sql.tables import blobs, blocks, code_versions, model_files, model_versions
from amphitrite.controlplane.store.sql.transactions import Database

Uploads = Mapping[StoredItem, tuple[UploadedFile, ...]]


@dataclass(frozen=True, slots=True)
class Inventory:
    """``registered``: digests of the content that a version has. The other content belongs to
    uploads, or is not needed."""

    uploads: tuple[StoredItem, ...]
    content: tuple[StoredItem, ...]
    unfinished: tuple[StoredItem, ...]
    repositories: tuple[StoredItem, ...]
    registered: frozenset[str]

    @property
    def items(self) -> tuple[StoredItem, ...]:
        """Everything that takes space: uploads are made of content."""
        return (*self.content, *self.unfinished, *self.repositories)


def take(
    database: Database, content: Content, scratch: Scratch, in_use: Set[str], now: float, age_s: float
) -> Inventory:
    """The inventory at ``now``. Content of uploads that are garbage is not needed.

    ``in_use``: digests of manifests that a workload runs or is about to run. Raises what the
    content store raises.
    """
    # Listed first: what appears later is then not taken for unneeded.
    entries, parts = list(content.entries()), list(content.unfinished())
    directories = _directories(scratch)
    with database.read() as connection:
        found = read_uploads(connection)
        registered = frozenset(connection.execute(select(model_files.c.digest).distinct()).scalars())
        manifests = set(connection.execute(select(model_versions.c.digest)).scalars()) | in_use
        kept_parts = set(connection.execute(select(blocks.c.file)).scalars())
    needed = registered | {
        file.digest for upload, files in found.items() if not is_garbage(upload, now, age_s) for file in files
    }
    return Inventory(
        tuple(found),
        tuple(StoredItem("content", e.name, 1, e.size, e.stored_at, e.name in needed) for e in entries),
        # A block is kept for as long as its file may still be committed, but not for ever.
        tuple(
            StoredItem(
                "unfinished", e.name, 1, e.size, e.stored_at, e.name in kept_parts and e.stored_at >= now - age_s
            )
            for e in parts
        ),
        tuple(repository(scratch.repositories / name, needed=name in manifests) for name in directories),
        registered,
    )


def read_uploads(connection: Connection) -> Uploads:
    """All uploads and their files."""
    columns = (blobs.c.path, blobs.c.digest, blobs.c.size, blobs.c.modified_at)
    files = [UploadedFile(*row) for row in connection.execute(select(*columns))]
    paths: list[str] = []
    for query in (select(model_files.c.blob_path).distinct(), select(code_versions.c.document["files_at"].as_string())):
        paths += connection.execute(query).scalars()
    return garbage.uploads(files, paths)


def repository(path: Path, *, needed: bool) -> StoredItem:
    """A repository. Its size is that of files that it does not share with the content store."""
    files, size = measure([path], only_own=True)
    changed = 0.0
    with suppress(FileNotFoundError):
        changed = path.stat().st_mtime
    return StoredItem("repository", path.name, files, size, changed, needed)


def measure(paths: Iterable[Path], *, only_own: bool = False) -> tuple[int, int]:
    """(number, bytes) of the files at and below ``paths``; missing ones count nothing.

    ``only_own``: without the bytes of files that have another name elsewhere.
    """
    count = size = 0
    for root in paths:
        files = [root] if not root.is_dir() or root.is_symlink() else _files(root)
        for file in files:
            with suppress(OSError):
                status = file.lstat()
                count += 1
                size += 0 if only_own and status.st_nlink > 1 else status.st_size
    return count, size


def _files(root: Path) -> Iterable[Path]:
    for directory, _, names in os.walk(root):
        yield from (Path(directory) / name for name in names)


def _directories(scratch: Scratch) -> list[str]:
    with disk_errors(scratch.root):
        return sorted(path.name for path in scratch.repositories.iterdir())
