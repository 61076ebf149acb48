"""The check of models' files: what is stored, and the directories that are laid out from it.

Decides that everything is read from the disk, and which versions a damaged file belongs to. Must
not know who serves a model.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from sqlalchemy import select

from amphitrite.controlplane.store.checks.findings import UPLOAD, Report
from amphitrite.controlplane.store.content.content_store import Content
from amphitrite.controlplane.store.content.manifests import File
from amphitrite.controlplane.store.content.repository_directories import materialise
from amphitrite.controlplane.store.content.spool import Scratch
from amphitrite.controlplane.store.sql.tables import blobs, model_files, model_versions
from amphitrite.controlplane.store.sql.transactions import Database
from amphitrite.schemas.errors import Error

FILES, DIRECTORIES = "model files", "model directories"
_NOT_NEEDED = "nothing uses it: `ml server prune` removes it after a day"
_MADE_AGAIN = "it is made again when an instance starts from it; now: `ml server check --repair`"


def check(database: Database, content: Content, models: Path, report: Report, *, repair: bool) -> None:
    """``models``: ``Home.models``. Raises what the database and the content store raise."""
    # Stored first, needed later: what is stored meanwhile is not looked at.
    stored = set(content.digests())
    owners = _owners(database)
    for digest in sorted(stored | owners.keys()):
        found = _hash(content, digest)
        if found is None:
            # Unless its version has been deleted meanwhile.
            if digest in owners and digest in (needed := _owners(database)):
                report.count(FILES)
                report.add(FILES, digest, f"it is missing; it is in {_names(needed[digest])}", UPLOAD)
            continue
        report.count(FILES, 1, found[1])
        if found[0] != digest:
            problem = f"its SHA-256 is another one; it is in {_names(owners.get(digest, ()))}"
            report.add(FILES, digest, problem, UPLOAD if digest in owners else _NOT_NEEDED)
    if (models / "repositories").is_dir():
        _check_directories(database, content, models, report, repair=repair)


def _check_directories(database: Database, content: Content, models: Path, report: Report, *, repair: bool) -> None:
    manifests = _manifests(database)
    for root in sorted((models / "repositories").iterdir()):
        files = manifests.get(root.name, ())
        broken = next((file.path for file in files if not _holds(root / file.path, file)), None)
        report.count(DIRECTORIES, 1, sum(file.size for file in files))
        if broken is None:
            continue
        repaired = False
        if repair:
            with suppress(Error):
                materialise(content, Scratch(models), root.name, files)
                repaired = True
        report.add(DIRECTORIES, root.name, f"{broken} is not what was uploaded", _MADE_AGAIN, repaired=repaired)


def _hash(content: Content, digest: str) -> tuple[str, int] | None:
    """The SHA-256 and the size of what is stored; None if it is missing."""
    size = content.size(digest)
    if size is None:
        return None
    sha256 = hashlib.sha256()
    try:
        content.forget_cached(digest)
        for data in content.read(digest, 0, size, verified=False):
            sha256.update(data)
    except LookupError:
        return None
    return sha256.hexdigest(), size


def _holds(path: Path, file: File) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    with open(descriptor, "rb") as stream:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        sha256 = hashlib.sha256()
        try:
            while data := stream.read(1024 * 1024):
                sha256.update(data)
        except OSError:
            return False
    return sha256.hexdigest() == file.digest


def _owners(database: Database) -> Mapping[str, list[str]]:
    """Digest -> the versions and uploads that have it."""
    found: dict[str, list[str]] = {}
    with database.read() as connection:
        for row in connection.execute(select(model_files).order_by(model_files.c.model, model_files.c.version)):
            found.setdefault(row.digest, []).append(f"model {row.model}:{row.version}, {row.path}")
        for row in connection.execute(select(blobs.c.path, blobs.c.digest)):
            found.setdefault(row.digest, []).append(f"upload {row.path}")
    return found


def _manifests(database: Database) -> Mapping[str, tuple[File, ...]]:
    """Digest of a manifest -> its files. Equal ones have equal digests."""
    query = select(model_versions.c.digest.label("of"), model_files).where(
        model_files.c.model == model_versions.c.model, model_files.c.version == model_versions.c.version
    )
    found: dict[str, dict[str, File]] = {}
    with database.read() as connection:
        for row in connection.execute(query):
            found.setdefault(row.of, {})[row.path] = File(row.path, row.digest, row.size, row.blob_path)
    return {digest: tuple(files.values()) for digest, files in found.items()}


def _names(owners: Iterable[str]) -> str:
    names = list(owners)
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return "; ".join(names[:3]) + more if names else "no model and no upload"
