"""Code assets: uploaded directories of scripts, registered as versions.

Decides where an upload's blobs are, that a version keeps its files, and which version already has
some content. Must not know HTTP or signatures. Nothing here runs the code.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, insert, select, update

from amphitrite.controlplane.store.content.blob_store import BlobStore
from amphitrite.controlplane.store.content.manifests import File, manifest_digest, read_files
from amphitrite.controlplane.store.sql.tables import code_versions
from amphitrite.controlplane.store.sql.transactions import Database
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key

#: Each upload is a directory below this one, as ``content.garbage_collection`` expects.
UPLOADS = "codes"
_UPLOAD = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class CodeVersion:
    """One version of a code asset.

    ``document``: name, version, ``path`` (the URL that the client gave), description, tags,
    properties. ``hash``: the client's hash of the files. Times: seconds since the epoch.
    """

    name: str
    version: str
    document: Mapping[str, Any]
    hash: str | None
    created_at: float
    modified_at: float


def new_upload() -> str:
    """A new, unique name of an upload."""
    return uuid.uuid4().hex


def directory(upload: str) -> str:
    """The path of an upload's blobs, with a final slash. Raises Error ResourceNotFound for an
    invalid name."""
    if not _UPLOAD.fullmatch(upload):
        raise Error("ResourceNotFound", f"upload {upload[:80]} does not exist", target=upload[:80])
    return f"{UPLOADS}/{upload}/"


class CodeStore:
    """Thread-safe. ``blobs`` holds the uploads. Names are compared without case."""

    def __init__(self, database: Database, blobs: BlobStore) -> None:
        self._database, self._blobs = database, blobs

    def put_version(
        self, name: str, version: str, document: Mapping[str, Any], files_at: str, *, hash: str | None, now: float
    ) -> tuple[CodeVersion, bool]:
        """Registers the files at the path ``files_at``, or changes a version's metadata.

        Returns the version and whether it was created. Raises Error UserError (no files there, or
        other files than registered) or LimitExceeded.
        """
        with self._database.write() as connection:
            row = _find(connection, name, version)
            if row is None:
                content = {"files_at": files_at, "digest": self._digest(connection, files_at)}
                values = {"document": {**document, **content}, "hash": hash, "created_at": now, "modified_at": now}
                connection.execute(insert(code_versions).values(name=key(name), version=version, **values))
                return _get(connection, name, version), True
            stored = row["document"]
            if files_at != stored["files_at"] and self._digest(connection, files_at) != stored["digest"]:
                hint = "register it as a new version"
                raise Error("UserError", "Asset paths cannot be updated.", target="codeUri", hint=hint)
            kept = {field: stored[field] for field in ("name", "path", "files_at", "digest")}
            connection.execute(
                update(code_versions)
                .where(code_versions.c.name == key(name), code_versions.c.version == version)
                .values(document={**document, **kept}, modified_at=now)
            )
            return _get(connection, name, version), False

    def get_version(self, name: str, version: str) -> CodeVersion:
        """Raises Error ResourceNotFound."""
        with self._database.read() as connection:
            return _get(connection, name, version)

    def list_versions(self, name: str) -> list[CodeVersion]:
        """Newest first; empty for an unknown name."""
        query = select(code_versions).where(code_versions.c.name == key(name))
        return self._query(query)

    def versions_with_hash(self, hash: str) -> list[CodeVersion]:
        """The versions of any name with this hash, newest first. A client uses one of them instead
        of uploading the files again."""
        return self._query(select(code_versions).where(code_versions.c.hash == hash))

    def require_unregistered(self, upload: str) -> None:
        """Raises Error Conflict if a version has the files of this upload, because they never
        change again."""
        files_at = code_versions.c.document["files_at"].as_string()
        query = select(code_versions.c.name).where((files_at + "/").startswith(directory(upload), autoescape=True))
        with self._database.read() as connection:
            if connection.execute(query.limit(1)).first() is not None:
                message = "these files belong to a registered version, which cannot change"
                raise Error("Conflict", message, target=upload, hint="start another upload")

    def _query(self, query: Any) -> list[CodeVersion]:
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(code_versions.c.created_at.desc(), code_versions.c.name))
            return [_version(row) for row in rows.mappings()]

    def _digest(self, connection: Connection, files_at: str) -> str:
        files: tuple[File, ...] = read_files(connection, files_at, files_max=self._blobs.limits.files_per_model)
        return manifest_digest(files)


def _find(connection: Connection, name: str, version: str) -> RowMapping | None:
    at = (code_versions.c.name == key(name)) & (code_versions.c.version == version)
    return connection.execute(select(code_versions).where(at)).mappings().first()


def _get(connection: Connection, name: str, version: str) -> CodeVersion:
    row = _find(connection, name, version)
    if row is None:
        message = f"code '{name}' has no version '{version}'"
        raise Error("ResourceNotFound", message, target=f"{name}:{version}")
    return _version(row)


def _version(row: RowMapping) -> CodeVersion:
    document = {field: value for field, value in row["document"].items() if field not in ("files_at", "digest")}
    return CodeVersion(
        name=row["document"]["name"],
        version=row["version"],
        document=document,
        hash=row["hash"],
        created_at=row["created_at"],
        modified_at=row["modified_at"],
    )
