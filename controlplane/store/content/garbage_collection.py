"""What nothing refers to any more leaves the model store.

Decides what is garbage: only what is old and belongs to no version, no path and no workload. Must not know how anything
came there.
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

#: An upload that nobody has registered after this long is given up; everything younger is left alone.
AGE_S = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Collected:
    """How much went: paths, content files, their bytes, repositories."""

    paths: int
    files: int
    file_bytes: int
    repositories: int


def collect(database: Database, content: Content, scratch: Scratch, now: float, in_use: Set[str]) -> Collected:
    """``in_use``: digests of manifests that a workload runs or is about to run. Safe beside uploads and registrations,
    of other control planes too: a registration sees a path before it goes or not at all, content is young from its
    upload on, and whoever refers to content looks in the same transaction whether it is there still."""
    before = now - AGE_S
    Blocks(database, content).drop_older(before)
    with database.write() as connection:
        paths = _drop_paths(connection, before)
        contents = set(connection.execute(select(blobs.c.digest).union(select(model_files.c.digest))).scalars())
        manifests = set(connection.execute(select(model_versions.c.digest)).scalars())
    count, size = _drop_content(database, content, contents, before)
    with disk_errors(scratch.root):
        repositories = _drop_repositories(scratch, manifests | in_use)
        remove_older(scratch.temporary, before)
    return Collected(paths, count, size, repositories)


def _drop_paths(connection: Connection, before: float) -> int:
    """Uploads go as a whole. A client takes the mark on one file of a directory (``upload_status``) for the presence of
    all of them, so a directory must never lose only some."""
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
    doomed = [path for group, paths in groups.items() if newest[group] < before for path in paths]
    for start in range(0, len(doomed), 500):
        connection.execute(delete(blobs).where(blobs.c.path.in_(doomed[start : start + 500])))
    return len(doomed)


def _group(path: str) -> str:
    """``LocalUpload/<hash>/...`` is one upload, and so is ``codes/<upload>/...`` (:mod:`codes`)."""
    return "/".join(path.split("/")[:2])


def _drop_content(database: Database, content: Content, kept: Set[str], before: float) -> tuple[int, int]:
    count = size = 0
    for digest in content.digests():
        if digest in kept:
            continue
        length = content.size(digest) or 0
        # A transaction for each, as an object store may take its time to answer.
        with database.write() as connection:
            if not _referred_to(connection, digest) and content.discard_older(digest, before):
                count, size = count + 1, size + length
    return count, size


def _referred_to(connection: Connection, digest: str) -> bool:
    query = select(blobs.c.digest).where(blobs.c.digest == digest)
    return (
        connection.execute(query.union(select(model_files.c.digest).where(model_files.c.digest == digest))).first()
        is not None
    )


def _drop_repositories(scratch: Scratch, kept: Set[str]) -> int:
    count = 0
    for directory in scratch.repositories.iterdir():
        if directory.name not in kept:
            # Out of sight first, so that nobody ever starts on half a repository.
            doomed = scratch.temporary_name()
            directory.rename(doomed)
            remove_path(doomed)
            count += 1
    return count
