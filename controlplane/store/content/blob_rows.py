"""Blobs as the database has them: one path, and lists of paths.

Decides what is read of a row, and how a list folds what lies behind a delimiter. Must not know how blobs come about.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping, select

from amphitrite.controlplane.store.sql.tables import blobs
from amphitrite.schemas.errors import Error

#: Sorts after every other character, so prefix + this bounds all that begins with prefix.
LAST = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class Blob:
    """One path. ``etag`` is quoted and depends on the content alone; ``metadata``: names without ``x-ms-meta-``. Times:
    seconds since the epoch."""

    path: str
    digest: str
    size: int
    etag: str
    content_type: str
    metadata: Mapping[str, str]
    created_at: float
    modified_at: float


@dataclass(frozen=True, slots=True)
class Listing:
    """``prefixes``: what lies deeper, up to and with the delimiter. ``next_marker``: None when this is all."""

    blobs: tuple[Blob, ...]
    prefixes: tuple[str, ...]
    next_marker: str | None


def row_of(connection: Connection, path: str) -> RowMapping | None:
    return connection.execute(select(blobs).where(blobs.c.path == path)).mappings().first()


def blob_of(row: RowMapping | None, path: str) -> Blob:
    """Raises Error BlobNotFound for None."""
    if row is None:
        raise Error("BlobNotFound", f"no blob {path}", target=path)
    return Blob(
        path=row["path"],
        digest=row["digest"],
        size=row["size"],
        etag=f'"0x{row["digest"][:16].upper()}"',
        content_type=row["content_type"],
        metadata=row["metadata"],
        created_at=row["created_at"],
        modified_at=row["modified_at"],
    )


def check_text(text: str) -> None:
    """What came from bytes that are not UTF-8 cannot be a key of the database. Raises Error BadArgument."""
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise Error("BadArgument", f"not Unicode text: {text[:80]!r}") from exc


def listed(connection: Connection, prefix: str, delimiter: str, start: str, limit: int) -> Listing:
    """The first ``limit`` entries from the path ``start`` on."""
    found: list[Blob] = []
    prefixes: list[str] = []
    while True:
        query = select(blobs).where(blobs.c.path >= start, blobs.c.path < prefix + LAST)
        page = connection.execute(query.order_by(blobs.c.path).limit(limit + 1)).mappings().all()
        for row in page:
            path = row["path"]
            if path < start:
                continue  # It belongs to the prefix before.
            if len(found) + len(prefixes) == limit:
                return Listing(tuple(found), tuple(prefixes), path)
            cut = path.find(delimiter, len(prefix)) if delimiter else -1
            if cut < 0:
                found.append(blob_of(row, path))
                start = path + "\0"
            else:
                prefixes.append(path[: cut + len(delimiter)])
                start = prefixes[-1] + LAST
        if len(page) <= limit:
            return Listing(tuple(found), tuple(prefixes), None)
