"""Garbage collection of the model store.

Decides what is garbage: what is old and belongs to no version, no path and no workload. Must not
know how anything was created.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Set
from dataclasses import dataclass

from sqlalchemy import Connection, delete, select

from amphitrite.controlplane.store.content.blocks import Blocks
from amphitrite.controlplane.store.content.content_store import Content
from amphitrite.controlplane.store.content.spool import Scratch, disk_errors, remove_older, remove_path
from amphitrite.controlplane.store.sql.tables import blobs, code_versions, model_files, model_versions
from amphitrite.controlplane.store.sql.transactions import Database

#: An upload that is not registered after this many seconds is deleted; nothing younger is.
AGE_S = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class CollectionResult:
    """The numbers of deleted paths, content files, their bytes, and repositories."""

    paths: int
    files: int
    file_bytes: int
    repositories: int


def collect(database: Database, content: Content, scratch: Scratch, now: float, in_use: Set[str]) -> CollectionResult:
    """Deletes garbage. ``in_use``: digests of manifests that a workload runs or is about to run.

    Safe during uploads and registrations, also of other control planes: a registration sees all of
    an upload or nothing of it, content is new from its upload on, and a transaction that refers to
    content checks that it still exists.
    """
    before = now - AGE_S
    Blocks(database, content).drop_expired(before)
    with database.write() as connection:
        paths = _drop_paths(connection, before)
        contents = set(connection.execute(select(blobs.c.digest).union(select(model_files.c.digest))).scalars())
        manifests = set(connection.execute(select(model_versions.c.digest)).scalars())
    count, size = _drop_content(database, content, contents, before)
    with disk_errors(scratch.root):
        repositories = _drop_repositories(scratch, manifests | in_use)
        remove_older(scratch.temporary, before)
    return CollectionResult(paths, count, size, repositories)


def _drop_paths(connection: Connection, before: float) -> int:
    """Deletes uploads as a whole. Clients take the mark on one file (``upload_status``) to mean
    that the whole directory is there, so it must never lose only some files."""
    groups: dict[str, list[str]] = defaultdict(list)
    newest: dict[str, float] = defaultdict(float)
    for row in connection.execute(select(blobs.c.path, blobs.c.modified_at)):
        group = _group(row.path)
        groups[group].append(row.path)
        newest[group] = max(newest[group], row.modified_at)
    files_at = code_versions.c.document["files_at"].as_string()
    for query in (select(model_files.c.blob_path).distinct(), select(files_at)):
        for path in connection.execute(query).scalars():
            groups.pop(_group(path), None)
    expired = [path for group, paths in groups.items() if newest[group] < before for path in paths]
    for start in range(0, len(expired), 500):
        connection.execute(delete(blobs).where(blobs.c.path.in_(expired[start : start + 500])))
    return len(expired)


def _group(path: str) -> str:
    """``LocalUpload/<hash>/...`` is one upload, and so is ``codes/<upload>/...``
    (``assets.code_store``)."""
    return "/".join(path.split("/")[:2])


def _drop_content(database: Database, content: Content, kept: Set[str], before: float) -> tuple[int, int]:
    count = size = 0
    for digest in content.digests():
        if digest in kept:
            continue
        length = content.size(digest) or 0
        # A transaction for each, because an object store may be slow.
        with database.write() as connection:
            if not _is_referenced(connection, digest) and content.discard_older(digest, before):
                count, size = count + 1, size + length
    return count, size


def _is_referenced(connection: Connection, digest: str) -> bool:
    query = select(blobs.c.digest).where(blobs.c.digest == digest)
    return (
        connection.execute(query.union(select(model_files.c.digest).where(model_files.c.digest == digest))).first()
        is not None
    )


def _drop_repositories(scratch: Scratch, kept: Set[str]) -> int:
    count = 0
    for directory in scratch.repositories.iterdir():
        if directory.name not in kept:
            # Renamed first, so that no instance ever starts from half a repository.
            expired = scratch.temporary_name()
            directory.rename(expired)
            remove_path(expired)
            count += 1
    return count
