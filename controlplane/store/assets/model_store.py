"""Models: containers, immutable versions, and what a deployment refers to.

Decides that a version's content is frozen when it is registered, which versions lists show, and
which one is the latest. Must not know HTTP, uploads in progress or instances.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, insert, update

from amphitrite.controlplane.core.storage.garbage import AGE_S
from amphitrite.controlplane.store.assets import model_versions
from amphitrite.controlplane.store.assets.catalogue import Container, Order, View
from amphitrite.controlplane.store.assets.model_versions import CATALOGUE, ModelVersion
from amphitrite.controlplane.store.content import garbage_collection, inventory
from amphitrite.controlplane.store.content.blob_store import DEFAULT_LIMITS, BlobStore, Limits
from amphitrite.controlplane.store.content.content_store import Content
from amphitrite.controlplane.store.content.inventory import Inventory
from amphitrite.controlplane.store.content.manifest_files import StoredFiles
from amphitrite.controlplane.store.content.manifests import (
    File,
    manifest_digest,
    read_manifest,
    read_repository,
    uploaded_folder,
)
from amphitrite.controlplane.store.content.repository_directories import (
    materialise,
    missing_directories,
    sequence_facts,
)
from amphitrite.controlplane.store.content.spool import Scratch
from amphitrite.controlplane.store.sql.tables import model_files
from amphitrite.controlplane.store.sql.transactions import Database
from amphitrite.dataplane.triton.repository_layout import model_names
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key

__all__ = ["Container", "Layout", "Limits", "ModelStore", "ModelVersion", "Order", "View"]


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of a repository, sorted by path, and the empty directories that it needs."""

    digest: str
    files: tuple[File, ...]
    empty_directories: tuple[str, ...]


class ModelStore:
    """Thread-safe. Names are compared without case.

    ``blobs`` holds the uploads. ``scratch`` (``Home.models``) belongs to this control plane alone,
    while several may share the database and the content.
    """

    def __init__(
        self,
        database: Database,
        content: Content,
        scratch: Path,
        limits: Limits = DEFAULT_LIMITS,
        clock: Callable[[], float] = time.time,
        check: Callable[[StoredFiles], None] = lambda files: None,
    ) -> None:
        """``check``: raises Error for files that must not become a ``triton_model``."""
        self._database, self._scratch, self._check = database, Scratch(scratch), check
        self.blobs = BlobStore(database, content, limits, clock)

    def put_version(
        self,
        name: str,
        version: str,
        document: Mapping[str, Any],
        *,
        is_anonymous: bool = False,
        is_archived: bool = False,
        now: float,
    ) -> tuple[ModelVersion, bool]:
        """Registers a version, or changes its metadata. Returns the version and whether it was
        created.

        ``document``: a valid snake_case model document; its ``path`` is the URL of the uploaded
        files, for a ``triton_model`` as ``manifests.read_repository`` takes it. Equal files at
        another URL are the same content, and the first URL is kept. Anonymous files of another type
        become another version than the requested one.

        Raises Error UserError (no files below the path, other files than registered, or not a
        Triton repository), LimitExceeded, Unsupported (a URL that is not an upload), Conflict (the
        files changed meanwhile), and what ``check`` raises.
        """
        validated_digest = self._validate_files(name, version, document, is_anonymous)
        with self._database.write() as connection:
            if is_anonymous:
                version = model_versions.anonymous_version(connection, name, version, document.get("type"))
            row = model_versions.find_version(connection, name, version)
            if row is not None:
                self._check_same_content(connection, row, document, f"{row['name']}:{version}")
                values = {
                    "document": {**document, "path": row["document"]["path"]},
                    "is_anonymous": is_anonymous,
                    "is_archived": is_archived,
                    "modified_at": now,
                }
                connection.execute(update(CATALOGUE.versions).where(CATALOGUE.at(name, version)).values(**values))
                return model_versions.get_version(connection, name, version), False
            files = self._manifest(connection, document)
            names = model_names([f.path for f in files]) if document.get("type") == "triton_model" else ()
            if validated_digest not in (None, manifest_digest(files)):
                raise Error("Conflict", "the files changed while they were checked", target="path", hint="try again")
            CATALOGUE.add(
                connection,
                name,
                version,
                now,
                document=dict(document),
                digest=manifest_digest(files),
                model_names=list(names),
                is_anonymous=is_anonymous,
                is_archived=is_archived,
            )
            connection.execute(
                insert(model_files),
                [
                    {
                        "model": key(name), "version": version, "path": file.path,
                        "digest": file.digest, "size": file.size, "blob_path": file.blob_path,
                    }
                    for file in files
                ],
            )  # fmt: skip
            return model_versions.get_version(connection, name, version), True

    def get_version(self, name: str, version: str) -> ModelVersion:
        """Raises Error ResourceNotFound."""
        with self._database.read() as connection:
            return model_versions.get_version(connection, name, version)

    def list_versions(
        self, name: str, view: View = "ActiveOnly", order: Order = "createdtime desc"
    ) -> list[ModelVersion]:
        """Without anonymous versions; empty for an unknown name."""
        with self._database.read() as connection:
            return model_versions.list_versions(connection, name, view, order)

    def list_all(self) -> list[ModelVersion]:
        """All versions of all models, anonymous and archived ones too, sorted by name."""
        with self._database.read() as connection:
            return model_versions.list_all(connection)

    def latest(self, name: str) -> ModelVersion:
        """The version of the label ``latest``: created last and not archived. Raises Error
        ResourceNotFound."""
        versions = self.list_versions(name)
        if not versions:
            raise CATALOGUE.no_versions(name)
        return versions[0]

    def delete_versions(self, name: str, version: str | None) -> int:
        """Deletes a version, or all of ``name`` for None, and returns how many. The caller has
        refused what is in use. Files that no version has any more are garbage."""
        with self._database.write() as connection:
            wanted = [one for one in CATALOGUE.numbers(connection, name) if version in (None, one)]
            for one in wanted:
                of_version = (model_files.c.model == key(name)) & (model_files.c.version == one)
                connection.execute(delete(model_files).where(of_version))
                CATALOGUE.remove(connection, name, one)
            return len(wanted)

    def list_models(self, view: View = "ActiveOnly", skip: int = 0, limit: int | None = None) -> list[Container]:
        """Containers sorted by name, without those that have only anonymous versions. ``skip`` and
        ``limit`` select a page."""
        with self._database.read() as connection:
            return CATALOGUE.list_containers(connection, view, skip, limit)

    def get_container(self, name: str) -> Container:
        """Raises Error ResourceNotFound."""
        with self._database.read() as connection:
            return CATALOGUE.get_container(connection, name)

    def set_container_archived(
        self,
        name: str,
        archived: bool,
        *,
        tags: Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
        now: float,
    ) -> Container:
        """Archives or restores the model. None keeps its tags or properties. Raises Error
        ResourceNotFound."""
        with self._database.write() as connection:
            return CATALOGUE.set_container_archived(connection, name, archived, tags, properties, now)

    def reference(self, name: str, version: str) -> dict[str, Any]:
        """What ``Store.put_deployment`` takes: {"name", "version", "digest", "model_names",
        "sequences", "number_ids"}.

        Raises Error ResourceNotFound.
        """
        model = self.get_version(name, version)
        sequences, number_ids = sequence_facts(self.blobs.content, self._files(model.digest))
        return {
            "name": model.name,
            "version": model.version,
            "digest": model.digest,
            "model_names": list(model.model_names),
            "sequences": sequences,
            "number_ids": number_ids,
        }

    def folder(self, version: ModelVersion) -> str:
        """The name of the uploaded directory that holds the files of ``layout``. Empty if their
        paths begin with it: a single file, or the directory of one model of a ``triton_model``."""
        with self._database.read() as connection:
            file = model_versions.any_file(connection, version.name, version.version)
        return uploaded_folder(file, _address(version.document))

    def keeps_sequences(self, version: ModelVersion) -> bool:
        """Whether one of its Triton models keeps state between requests. Raises as
        ``repository_directories.sequence_facts``."""
        return sequence_facts(self.blobs.content, self._files(version.digest))[0]

    def repository(self, digest: str) -> Path:
        """The model repository for a manifest's digest, created if it does not exist.

        Raises Error ResourceNotFound, and what ``repository_directories.materialise`` raises.
        """
        return materialise(self.blobs.content, self._scratch, digest, self._files(digest))

    def layout(self, digest: str) -> Layout:
        """The files and directories of the repository with this digest.

        Raises Error ResourceNotFound, and what ``repository_directories.missing_directories``
        raises.
        """
        files = self._files(digest)
        return Layout(digest, tuple(files), missing_directories(self.blobs.content, files))

    def collect_garbage(
        self, now: float, in_use: Set[str], *, age_s: float = AGE_S, dry_run: bool = False
    ) -> garbage_collection.CollectionResult:
        """See ``garbage_collection.collect``."""
        content = self.blobs.content
        return garbage_collection.collect(
            self._database, content, self._scratch, now, in_use, age_s=age_s, dry_run=dry_run
        )

    def inventory(self, now: float, in_use: Set[str]) -> Inventory:
        """See ``inventory.take``."""
        return inventory.take(self._database, self.blobs.content, self._scratch, in_use, now, AGE_S)

    def _files(self, digest: str) -> list[File]:
        with self._database.read() as connection:
            files = model_versions.manifest(connection, digest)
        if not files:
            raise Error("ResourceNotFound", f"no model version has the content {digest}", target=digest)
        return files

    def _manifest(self, connection: Connection, document: Mapping[str, Any]) -> tuple[File, ...]:
        read = read_repository if document.get("type") == "triton_model" else read_manifest
        return read(connection, _address(document), files_max=self.blobs.limits.files_per_model)

    def _validate_files(self, name: str, version: str, document: Mapping[str, Any], is_anonymous: bool) -> str | None:
        """Checks the files of a new ``triton_model`` version. Returns their digest, None if nothing
        was checked.

        It reads content, so it runs outside a write transaction.
        """
        if document.get("type") != "triton_model":
            return None
        with self._database.read() as connection:
            if is_anonymous:
                version = model_versions.anonymous_version(connection, name, version, document.get("type"))
            if model_versions.find_version(connection, name, version) is not None:
                return None
            files = self._manifest(connection, document)
        model_names([file.path for file in files])
        self._check(StoredFiles(self.blobs.content, files))
        return manifest_digest(files)

    def _check_same_content(
        self, connection: Connection, row: RowMapping, document: Mapping[str, Any], label: str
    ) -> None:
        """The same URL means the files that were there when the version was registered.

        ``label``: the name and the version. The message is Azure's, which its SDK compares.
        """
        same_type = document.get("type") == row["document"].get("type")
        if same_type and _address(document) == row["document"]["path"]:
            return
        if same_type and manifest_digest(self._manifest(connection, document)) == row["digest"]:
            return
        what = "with other files" if same_type else f"as a {row['document'].get('type')}"
        raise Error(
            "UserError",
            "Asset paths cannot be updated.",
            target="path" if same_type else "type",
            hint=f"{label} exists {what}: register this as another version, or leave out the version for the next one",
        )


def _address(document: Mapping[str, Any]) -> str:
    """The URL of the files of a model document."""
    address = document.get("path")
    if not isinstance(address, str) or not address:
        raise Error(
            "UserError", "the model has no path", target="path", hint="set path to the URL of the uploaded files"
        )
    return address
