"""Uploaded blobs: which path holds which content.

Decides the rules of the Azure Blob subset: what may be overwritten, metadata, listing with prefix and delimiter. A path
is a key in the database and nothing else; bytes are kept by their digest (``content``). Must not know HTTP or XML.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, select, update

from amphitrite.controlplane.store.content.blob_rows import LAST, Blob, Listing, blob_of, check_text, listed, row_of
from amphitrite.controlplane.store.content.blocks import Blocks
from amphitrite.controlplane.store.content.content_store import Content
from amphitrite.controlplane.store.content.spool import Chunks, Upload, too_large
from amphitrite.controlplane.store.sql.tables import blobs, model_files
from amphitrite.controlplane.store.sql.transactions import Database
from amphitrite.schemas.errors import Error

CONTENT_TYPE = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Limits:
    """``file_bytes``: of one blob. The others are Azure's own: characters, files, bytes."""

    file_bytes: int = 10 * 1024**3
    files_per_model: int = 1500
    path_length: int = 1024
    metadata_bytes: int = 8 * 1024


DEFAULT_LIMITS = Limits()


class BlobStore:
    """Thread-safe. ``path`` is what follows the container in the URL, percent-decoded.

    Every verb with a path raises Error BadArgument or LimitExceeded for one that no blob can have, every verb with
    metadata Error MetadataTooLarge.
    """

    def __init__(
        self,
        database: Database,
        content: Content,
        limits: Limits = DEFAULT_LIMITS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._database, self.content, self.limits, self._clock = database, content, limits, clock
        self._blocks = Blocks(database, content)

    def begin(self) -> Upload:
        """Somewhere to write a body to; then ``finish`` it and ``put`` the result, or ``put_block`` it."""
        return self.content.begin(self.limits.file_bytes)

    def check_path(self, path: str) -> None:
        """Raises for a path that no blob can have: for whoever is to read a long body first."""
        self._check_path(path)

    def put(
        self,
        path: str,
        digest: str,
        size: int,
        *,
        overwrite: bool,
        content_type: str = CONTENT_TYPE,
        metadata: Mapping[str, str] | None = None,
    ) -> Blob:
        """Let ``path`` hold the content that ``Upload.finish`` returned.

        Raises Error BlobAlreadyExists (unless ``overwrite``), Conflict (a model version holds other content there),
        RuntimeUnavailable (the content is not there: it was old and has just been dropped).
        """
        return self._put(path, digest, size, overwrite, content_type, metadata, None)

    def put_block(self, path: str, block_id: str, upload: Upload, *, expected_md5: bytes | None = None) -> None:
        """Keep a part of ``path`` for a day, until ``commit_blocks`` names it. Raises as ``Upload.finish``."""
        self._check_path(path)
        self._blocks.put(path, block_id, upload, expected_md5, now=self._clock())

    def commit_blocks(
        self,
        path: str,
        block_ids: Sequence[str],
        *,
        overwrite: bool = True,
        content_type: str = CONTENT_TYPE,
        metadata: Mapping[str, str] | None = None,
    ) -> Blob:
        """Let ``path`` hold the blocks in this order; its other blocks are dropped. The same list once more, as sent by
        a client that missed the answer, gives the blob as it is.

        Raises Error InvalidBlockList (no such block), RequestTooLarge and what ``put`` raises.
        """
        self._check_path(path)
        found = self._blocks.find(path, block_ids)
        if found is None:
            committed = self._committed(path, block_ids)
            if committed is not None:
                return committed
            raise Error("InvalidBlockList", "the block list names a block that was not uploaded", target=path)
        if not overwrite and self._find(path) is not None:
            raise _already_exists(path)
        names, total = found
        if total > self.limits.file_bytes:
            # One block may be named many times, so a list says more than was ever sent.
            raise too_large(self.limits.file_bytes, total)
        with self.begin() as upload:
            upload.hash_as(block=False, md5=False)
            self._blocks.copy(names, upload)
            digest, size = upload.finish()
        blob = self._put(path, digest, size, overwrite, content_type, metadata, list(block_ids))
        self._blocks.drop(path)
        return blob

    def set_metadata(self, path: str, metadata: Mapping[str, str]) -> Blob:
        """Replace the metadata. Raises Error BlobNotFound."""
        self._check_metadata(path, metadata)
        with self._database.write() as connection:
            values = {"metadata": dict(metadata), "modified_at": self._clock()}
            connection.execute(update(blobs).where(blobs.c.path == self._check_path(path)).values(**values))
            row = row_of(connection, path)
        return blob_of(row, path)

    def head(self, path: str) -> Blob:
        """Raises Error BlobNotFound."""
        path = self._check_path(path)
        with self._database.read() as connection:
            return blob_of(row_of(connection, path), path)

    def read(self, blob: Blob, first: int = 0, last: int | None = None) -> Chunks:
        """Bytes ``first`` to ``last``, both included; ``last`` may lie past the end. The content is open when
        this returns, so nothing that happens to the path later disturbs the reader.

        Raises Error InvalidRange (``first`` lies past the end), InternalServerError (the content is not there).
        """
        end = blob.size if last is None else min(last + 1, blob.size)
        if first < 0 or (first >= end and (blob.size or first or last is not None)):
            raise Error(
                "InvalidRange", f"bytes {first}-{'' if last is None else last} of {blob.size}", target=blob.path
            )
        try:
            return self.content.read(blob.digest, first, end)
        except LookupError as exc:
            raise Error("InternalServerError", "the content of the blob is lost", target=blob.path) from exc

    def list(self, prefix: str = "", delimiter: str = "", *, marker: str = "", limit: int = 5000) -> Listing:
        """Blobs in the order of their paths, those below a delimiter after ``prefix`` folded into one entry. ``marker``
        is a ``next_marker``."""
        check_text(prefix + delimiter + marker)
        with self._database.read() as connection:
            return listed(connection, prefix, delimiter, max(prefix, marker), limit)

    def _put(
        self,
        path: str,
        digest: str,
        size: int,
        overwrite: bool,
        content_type: str,
        metadata: Mapping[str, str] | None,
        block_ids: Sequence[str] | None,
    ) -> Blob:
        self._check_metadata(self._check_path(path), metadata or {})
        values: dict[str, Any] = {
            "digest": digest, "size": size, "content_type": content_type, "metadata": dict(metadata or {}),
            "block_ids": block_ids, "modified_at": self._clock(),
        }  # fmt: skip
        with self._database.write() as connection:
            self._require_content(digest, path)
            found = row_of(connection, path)
            if found is None:
                connection.execute(insert(blobs).values(path=path, created_at=self._clock(), **values))
            else:
                if not overwrite:
                    raise _already_exists(path)
                _refuse_registered(connection, path, digest)
                connection.execute(update(blobs).where(blobs.c.path == path).values(**values))
            return blob_of(row_of(connection, path), path)

    def _require_content(self, digest: str, path: str) -> None:
        """Garbage collection drops content inside a write transaction, so what is there in this one stays."""
        if self.content.size(digest) is None:
            raise Error("RuntimeUnavailable", "the content is not there any more", target=path, hint="upload it again")

    def _find(self, path: str) -> Blob | None:
        with self._database.read() as connection:
            row = row_of(connection, path)
        return None if row is None else blob_of(row, path)

    def _committed(self, path: str, block_ids: Sequence[str]) -> Blob | None:
        with self._database.read() as connection:
            row = row_of(connection, path)
        return blob_of(row, path) if row is not None and row["block_ids"] == list(block_ids) else None

    def _check_path(self, path: str) -> str:
        if len(path) > self.limits.path_length:
            raise Error(
                "LimitExceeded",
                f"a path may have {self.limits.path_length} characters (path_length), this one has {len(path)}",
                target=path[:80],
                hint="this is a limit of Azure Blob as well: use shorter names",
            )
        check_text(path)
        if not path or "\0" in path or LAST in path:
            raise Error("BadArgument", f"not a path of a blob: {path!r}")
        return path

    def _check_metadata(self, path: str, metadata: Mapping[str, str]) -> None:
        size = sum(len(name) + len(value) for name, value in metadata.items())
        if size > self.limits.metadata_bytes:
            raise Error(
                "MetadataTooLarge",
                f"metadata may have {self.limits.metadata_bytes} characters (metadata_bytes), this has {size}",
                target=path,
                hint="this is a limit of Azure Blob as well: use less metadata",
            )


def _already_exists(path: str) -> Error:
    return Error("BlobAlreadyExists", f"the blob exists already: {path}", target=path)


def _refuse_registered(connection: Connection, path: str, digest: str) -> None:
    """What a version was made of stays downloadable as it was."""
    holder = select(model_files.c.model, model_files.c.version)
    holder = holder.where(model_files.c.blob_path == path, model_files.c.digest != digest)
    row = connection.execute(holder.limit(1)).first()
    if row is not None:
        raise Error(
            "Conflict",
            f"model {row.model}:{row.version} has other content at {path}",
            target=path,
            hint="upload to another path and register a new version",
        )
