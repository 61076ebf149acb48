"""Uploaded blobs: the content at each path.

Decides the rules of the supported part of Azure Blob Storage: what may be overwritten, metadata,
and lists with prefix and delimiter. A path is only a key in the database; bytes are stored by
digest (``content_store``). Must not know HTTP or XML.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, select, update

from amphitrite.controlplane.core.storage.garbage import upload_of
from amphitrite.controlplane.store.content.blob_rows import (
    LAST,
    Blob,
    Listing,
    check_text,
    find_row,
    list_blobs,
    to_blob,
)
from amphitrite.controlplane.store.content.blocks import Blocks
from amphitrite.controlplane.store.content.content_store import Content, damaged
from amphitrite.controlplane.store.content.spool import Chunks, Upload, too_large
from amphitrite.controlplane.store.sql.tables import blobs, model_files
from amphitrite.controlplane.store.sql.transactions import Database
from amphitrite.schemas.errors import Error

CONTENT_TYPE = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Limits:
    """``file_bytes``: the largest blob. The others are Azure's limits: characters, files, bytes."""

    file_bytes: int = 10 * 1024**3
    files_per_model: int = 1500
    path_length: int = 1024
    metadata_bytes: int = 8 * 1024


DEFAULT_LIMITS = Limits()


class BlobStore:
    """Thread-safe. ``path``: the part of the URL after the container, percent-decoded.

    Methods with a path raise Error BadArgument or LimitExceeded if no blob can have it; methods
    with metadata raise Error MetadataTooLarge.
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
        """An upload to write a body to. ``finish`` it and ``put`` the result, or pass it to
        ``put_block``."""
        return self.content.begin(self.limits.file_bytes)

    def check_path(self, path: str) -> None:
        """Raises if no blob can have this path; call it before reading a long body."""
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
        """Stores the content that ``Upload.finish`` returned at ``path``.

        Without ``overwrite``, a blob with the same content is returned unchanged: two clients that
        send the same file at once both succeed. Raises Error BlobAlreadyExists (other content,
        without ``overwrite``), Conflict (a model version has other content there) or
        RuntimeUnavailable (the content was old and has just been deleted).
        """
        return self._put(path, digest, size, overwrite, content_type, metadata, None)

    def put_block(self, path: str, block_id: str, upload: Upload, *, expected_md5: bytes | None = None) -> None:
        """Stores a block of ``path`` for a day, until ``commit_blocks`` names it. Raises as
        ``Upload.finish``."""
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
        """Stores these blocks, in this order, as the content of ``path``, and deletes its other
        blocks.

        The same list again, from a client that missed the answer, returns the blob unchanged.
        Raises Error InvalidBlockList (no such block), RequestTooLarge, and what ``put`` raises.
        """
        self._check_path(path)
        block_files = self._blocks.find(path, block_ids)
        if block_files is None:
            committed = self._committed(path, block_ids)
            if committed is not None:
                return committed
            raise Error("InvalidBlockList", "the block list names a block that was not uploaded", target=path)
        names, total = block_files
        existing = None if overwrite else self._find(path)
        if existing is not None and existing.size != total:
            raise _already_exists(path)  # Other content, so the blocks need not be joined.
        if total > self.limits.file_bytes:
            # A list may name a block many times, so the result may be larger than what was
            # uploaded.
            raise too_large(self.limits.file_bytes, total)
        with self.begin() as upload:
            upload.hash_as(block=False, md5=False)
            try:
                self._blocks.copy(names, upload)
            except Error as error:
                # Another client has just committed the same list, which deletes the blocks.
                committed = self._committed(path, block_ids) if error.code == "Conflict" else None
                if committed is None:
                    raise
                return committed
            digest, size = upload.finish()
        blob = self._put(path, digest, size, overwrite, content_type, metadata, list(block_ids))
        self._blocks.drop(path)
        return blob

    def set_metadata(self, path: str, metadata: Mapping[str, str]) -> Blob:
        """Replaces the metadata. Raises Error BlobNotFound."""
        self._check_metadata(path, metadata)
        with self._database.write() as connection:
            values = {"metadata": dict(metadata), "modified_at": self._clock()}
            connection.execute(update(blobs).where(blobs.c.path == self._check_path(path)).values(**values))
            row = find_row(connection, path)
        return to_blob(row, path)

    def head(self, path: str) -> Blob:
        """Raises Error BlobNotFound."""
        path = self._check_path(path)
        with self._database.read() as connection:
            return to_blob(find_row(connection, path), path)

    def upload_is_intact(self, path: str) -> bool:
        """Whether all files of the upload that ``path`` belongs to are there, as they were sent.

        The first time it reads all that this process has not stored or read itself."""
        prefix, marker = f"{upload_of(path)}/", ""
        while True:
            page = self.list(prefix, marker=marker)
            if not all(self.content.intact(blob.digest) for blob in page.blobs):
                return False
            if page.next_marker is None:
                return True
            marker = page.next_marker

    def read(self, blob: Blob, first: int = 0, last: int | None = None) -> Chunks:
        """The bytes from ``first`` to ``last`` inclusive; ``last`` may be past the end.

        The content is already open when this returns, so later changes do not affect the reader.
        Raises Error InvalidRange (``first`` is past the end) or DamagedContent (the content is
        missing, or not what its digest says).
        """
        end = blob.size if last is None else min(last + 1, blob.size)
        if first < 0 or (first >= end and (blob.size or first or last is not None)):
            raise Error(
                "InvalidRange", f"bytes {first}-{'' if last is None else last} of {blob.size}", target=blob.path
            )
        try:
            return self.content.read(blob.digest, first, end)
        except LookupError as exc:
            hint = damaged(blob.digest, blob.path).hint
            raise Error("DamagedContent", "the content of the blob is missing", target=blob.path, hint=hint) from exc

    def list(self, prefix: str = "", delimiter: str = "", *, marker: str = "", limit: int = 5000) -> Listing:
        """Blobs sorted by path. Paths with ``delimiter`` after ``prefix`` are folded into one
        entry.

        ``marker``: a ``next_marker`` of the previous page.
        """
        check_text(prefix + delimiter + marker)
        with self._database.read() as connection:
            return list_blobs(connection, prefix, delimiter, max(prefix, marker), limit)

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
            row = find_row(connection, path)
            if row is None:
                connection.execute(insert(blobs).values(path=path, created_at=self._clock(), **values))
            else:
                if not overwrite:
                    if row["digest"] != digest:
                        raise _already_exists(path)
                    return to_blob(row, path)
                _refuse_registered(connection, path, digest)
                connection.execute(update(blobs).where(blobs.c.path == path).values(**values))
            return to_blob(find_row(connection, path), path)

    def _require_content(self, digest: str, path: str) -> None:
        """Garbage collection deletes content inside a write transaction, so content that exists in
        this one stays."""
        if self.content.size(digest) is None:
            raise Error("RuntimeUnavailable", "the content no longer exists", target=path, hint="upload it again")

    def _find(self, path: str) -> Blob | None:
        with self._database.read() as connection:
            row = find_row(connection, path)
        return None if row is None else to_blob(row, path)

    def _committed(self, path: str, block_ids: Sequence[str]) -> Blob | None:
        with self._database.read() as connection:
            row = find_row(connection, path)
        return to_blob(row, path) if row is not None and row["block_ids"] == list(block_ids) else None

    def _check_path(self, path: str) -> str:
        if len(path) > self.limits.path_length:
            raise Error(
                "LimitExceeded",
                f"the path has {len(path)} characters; at most {self.limits.path_length} (path_length)",
                target=path[:80],
                hint="use shorter names; Azure Blob Storage has the same limit",
            )
        check_text(path)
        if not path or "\0" in path or LAST in path:
            raise Error("BadArgument", f"{path!r} is not a valid blob path")
        return path

    def _check_metadata(self, path: str, metadata: Mapping[str, str]) -> None:
        size = sum(len(name) + len(value) for name, value in metadata.items())
        if size > self.limits.metadata_bytes:
            raise Error(
                "MetadataTooLarge",
                f"the metadata has {size} characters; at most {self.limits.metadata_bytes} (metadata_bytes)",
                target=path,
                hint="use less metadata; Azure Blob Storage has the same limit",
            )


def _already_exists(path: str) -> Error:
    return Error("BlobAlreadyExists", f"the blob already exists: {path}", target=path)


def _refuse_registered(connection: Connection, path: str, digest: str) -> None:
    """The files of a registered version stay downloadable unchanged."""
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
