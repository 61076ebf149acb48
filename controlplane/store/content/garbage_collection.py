"""Garbage collection of the model store.

Decides how garbage is deleted so that nothing needed goes with it. ``core.storage.garbage`` decides
what garbage is. Must not know how anything was created.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Set
from contextlib import suppress
from dataclasses import dataclass

from sqlalchemy import Connection, delete, select

from amphitrite.controlplane.core.storage.garbage import AGE_S, StoredItem, is_garbage
from amphitrite.controlplane.store.content import inventory
from amphitrite.controlplane.store.content.blocks import Blocks
from amphitrite.controlplane.store.content.content_store import Content
from amphitrite.controlplane.store.content.spool import Scratch, disk_errors, remove_older, remove_path
from amphitrite.controlplane.store.sql.tables import blobs, model_files, model_versions
from amphitrite.controlplane.store.sql.transactions import Database

#: The hourly collection and a user's may meet; the second finds less.
_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True, slots=True)
class CollectionResult:
    """What was deleted, or would be. ``paths``: of uploads. ``young``: uploads and parts of files
    that nobody needs yet, and that are too young to be garbage."""

    paths: int
    items: tuple[StoredItem, ...]
    young: tuple[StoredItem, ...] = ()

    def of(self, kind: str) -> tuple[StoredItem, ...]:
        return tuple(item for item in self.items if item.kind == kind)

    @property
    def files(self) -> int:
        """The number of content files."""
        return len(self.of("content"))

    @property
    def file_bytes(self) -> int:
        return sum(item.size for item in self.of("content"))

    @property
    def repositories(self) -> int:
        return len(self.of("repository"))


def collect(
    database: Database,
    content: Content,
    scratch: Scratch,
    now: float,
    in_use: Set[str],
    *,
    age_s: float = AGE_S,
    dry_run: bool = False,
) -> CollectionResult:
    """Deletes garbage; with ``dry_run`` it only says what. ``in_use``: digests of manifests that a
    workload runs or is about to run. ``age_s``: how long what nobody needs is kept.

    Safe during uploads and registrations, also of other control planes: a registration sees all of
    an upload or nothing of it, content is new from its upload on, and a transaction that refers to
    content checks that it still exists. Safe to kill: each step deletes one thing, or marks it
    first.
    """
    with _ONE_AT_A_TIME:
        found = inventory.take(database, content, scratch, in_use, now, age_s)
        expired = [upload for upload in found.uploads if is_garbage(upload, now, age_s)]
        garbage = [item for item in found.items if is_garbage(item, now, age_s)]
        young = tuple(
            item
            for item in (*found.uploads, *found.items)
            if not item.needed and item not in garbage and item not in expired
        )
        if dry_run:
            return CollectionResult(sum(upload.files for upload in expired), tuple(garbage), young)
        before = now - age_s
        Blocks(database, content).drop_expired(before)
        with database.write() as connection:
            paths = _drop_uploads(connection, now, age_s)
        deleted = [item for item in garbage if item.kind == "unfinished"]
        deleted += _drop_content(database, content, [i for i in garbage if i.kind == "content"], before)
        with disk_errors(scratch.root):
            repositories = [item for item in garbage if item.kind == "repository"]
            deleted += _drop_repositories(database, scratch, repositories, in_use)
            remove_older(scratch.temporary, before)
        return CollectionResult(paths, tuple(deleted), young)


def _drop_uploads(connection: Connection, now: float, age_s: float) -> int:
    """Decides again inside the transaction: an upload may have grown, or have been registered."""
    found = inventory.read_uploads(connection)
    paths = [file.path for upload, files in found.items() if is_garbage(upload, now, age_s) for file in files]
    for start in range(0, len(paths), 500):
        connection.execute(delete(blobs).where(blobs.c.path.in_(paths[start : start + 500])))
    return len(paths)


def _drop_content(
    database: Database, content: Content, garbage: list[StoredItem], before: float
) -> Iterator[StoredItem]:
    for item in garbage:
        # A transaction for each, because an object store may be slow.
        with database.write() as connection:
            if not _is_referenced(connection, item.name) and content.discard_older(item.name, before):
                yield item


def _is_referenced(connection: Connection, digest: str) -> bool:
    query = select(blobs.c.digest).where(blobs.c.digest == digest)
    return (
        connection.execute(query.union(select(model_files.c.digest).where(model_files.c.digest == digest))).first()
        is not None
    )


def _drop_repositories(
    database: Database, scratch: Scratch, garbage: list[StoredItem], in_use: Set[str]
) -> Iterator[StoredItem]:
    for item in garbage:
        expired = scratch.temporary_name()
        # No version with these files can be registered, and so no instance can be about to start
        # from the directory, until it has another name. Renamed first, so that no instance ever
        # starts from half a repository.
        with database.write() as connection:
            query = select(model_versions.c.digest).where(model_versions.c.digest == item.name)
            if item.name in in_use or connection.execute(query.limit(1)).first() is not None:
                continue
            with suppress(FileNotFoundError):
                (scratch.repositories / item.name).rename(expired)
        remove_path(expired)
        yield item
