"""Blobs in the database: one path, and lists of paths.

Decides how rows are read, and how a list folds paths at a delimiter. Must not know how blobs are
created.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping, select

from amphitrite.controlplane.store.sql.tables import blobs
from amphitrite.schemas.errors import Error

#: Sorts after every other character, so prefix + LAST is above every path that begins with prefix.
LAST = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class Blob:
    """A blob at one path.

    ``etag``: with quotes; it depends on the content alone. ``metadata``: names without
    ``x-ms-meta-``. Times: seconds since the epoch.
    """

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
    """A page of a list. ``prefixes``: folded paths, with the delimiter. ``next_marker``: None on
    the last page."""

    blobs: tuple[Blob, ...]
    prefixes: tuple[str, ...]
    next_marker: str | None


def find_row(connection: Connection, path: str) -> RowMapping | None:
    return connection.execute(select(blobs).where(blobs.c.path == path)).mappings().first()


def to_blob(row: RowMapping | None, path: str) -> Blob:
    """Raises Error BlobNotFound if ``row`` is None."""
    if row is None:
        raise Error("BlobNotFound", f"blob {path} does not exist", target=path)
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
    """Raises Error BadArgument for text from bytes that are not UTF-8, which the database cannot
    store."""
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise Error("BadArgument", f"the text is not valid UTF-8: {text[:80]!r}") from exc


def list_blobs(connection: Connection, prefix: str, delimiter: str, start: str, limit: int) -> Listing:
    """The first ``limit`` entries from the path ``start`` on."""
    entries: list[Blob] = []
    prefixes: list[str] = []
    while True:
        query = select(blobs).where(blobs.c.path >= start, blobs.c.path < prefix + LAST)
        page = connection.execute(query.order_by(blobs.c.path).limit(limit + 1)).mappings().all()
        for row in page:
            path = row["path"]
            if path < start:
                continue  # It belongs to the previous prefix.
            if len(entries) + len(prefixes) == limit:
                return Listing(tuple(entries), tuple(prefixes), path)
            cut = path.find(delimiter, len(prefix)) if delimiter else -1
            if cut < 0:
                entries.append(to_blob(row, path))
                start = path + "\0"
            else:
                prefixes.append(path[: cut + len(delimiter)])
                start = prefixes[-1] + LAST
        if len(page) <= limit:
            return Listing(tuple(entries), tuple(prefixes), None)
