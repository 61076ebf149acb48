"""Model versions as rows, and their files.

Decides which version anonymous files become. Works inside a transaction of its caller. Must not
know files on disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, and_, func, select

from amphitrite.controlplane.store.assets.catalogue import Catalogue, Order, View
from amphitrite.controlplane.store.content.manifests import File
from amphitrite.controlplane.store.sql.tables import model_files, model_versions, models
from amphitrite.schemas.names import key

CATALOGUE = Catalogue("model", models, model_versions, model_versions.c.model)


@dataclass(frozen=True, slots=True)
class ModelVersion:
    """One version of a model.

    ``document``: the snake_case model document. ``digest``: of the manifest. ``size``: bytes of all
    files. ``model_names``: the Triton models in it. Times: seconds since the epoch.
    """

    name: str
    version: str
    document: Mapping[str, Any]
    digest: str
    size: int
    model_names: tuple[str, ...]
    is_anonymous: bool
    is_archived: bool
    created_at: float
    modified_at: float
    #: When a deployment last used it, as far as that was noticed; None if never.
    used_at: float | None = None
    files: int = 0


def find_version(connection: Connection, name: str, version: str) -> RowMapping | None:
    return connection.execute(_rows().where(CATALOGUE.at(name, version))).mappings().first()


def get_version(connection: Connection, name: str, version: str) -> ModelVersion:
    """Raises Error ResourceNotFound."""
    row = find_version(connection, name, version)
    if row is None:
        raise CATALOGUE.not_found(name, version)
    return _version(row)


def list_all(connection: Connection) -> list[ModelVersion]:
    """All versions of all models, anonymous and archived ones too."""
    query = _rows().order_by(model_versions.c.model, model_versions.c.ordinal)
    return [_version(row) for row in connection.execute(query).mappings()]


def list_versions(connection: Connection, name: str, view: View, order: Order) -> list[ModelVersion]:
    query = CATALOGUE.list_query(_rows(), name, view, order)
    return [_version(row) for row in connection.execute(query).mappings()]


def anonymous_version(connection: Connection, name: str, version: str, kind: str | None) -> str:
    """The version for anonymous files of type ``kind``.

    Clients name anonymous files by their content, with version 1 for every type. Another type
    becomes another version, otherwise one directory could not be deployed in two ways.
    """
    columns = (model_versions.c.version, model_versions.c.document, model_versions.c.is_anonymous)
    rows = connection.execute(
        select(*columns).where(model_versions.c.model == key(name)).order_by(model_versions.c.ordinal)
    ).all()
    if not any(row.version == version and row.is_anonymous for row in rows):
        return version
    same = [row.version for row in rows if row.is_anonymous and row.document.get("type") == kind]
    return same[0] if same else str(len(rows) + 1)


def any_file(connection: Connection, name: str, version: str) -> File:
    """One file of an existing version."""
    of_version = and_(model_files.c.model == key(name), model_files.c.version == version)
    row = connection.execute(select(model_files).where(of_version).limit(1)).one()
    return File(row.path, row.digest, row.size, row.blob_path)


def manifest(connection: Connection, digest: str) -> list[File]:
    """The files of a version with this digest, sorted by path; empty if there is none."""
    owner = select(model_versions.c.model, model_versions.c.version).where(model_versions.c.digest == digest)
    row = connection.execute(owner.limit(1)).first()
    if row is None:
        return []
    of_owner = and_(model_files.c.model == row.model, model_files.c.version == row.version)
    rows = connection.execute(select(model_files).where(of_owner).order_by(model_files.c.path))
    return [File(file.path, file.digest, file.size, file.blob_path) for file in rows]


def _rows() -> Select[Any]:
    """The versions, with the size of their files."""
    of_version = and_(model_files.c.model == model_versions.c.model, model_files.c.version == model_versions.c.version)
    size = select(func.sum(model_files.c.size)).where(of_version).scalar_subquery()
    files = select(func.count()).select_from(model_files).where(of_version).scalar_subquery()
    return CATALOGUE.rows(size.label("size"), files.label("files"))


def _version(row: RowMapping) -> ModelVersion:
    return ModelVersion(
        name=row["name"],
        version=row["version"],
        document=row["document"],
        digest=row["digest"],
        size=int(row["size"]),
        model_names=tuple(row["model_names"]),
        is_anonymous=row["is_anonymous"],
        is_archived=row["is_archived"],
        created_at=row["created_at"],
        modified_at=row["modified_at"],
        used_at=row["used_at"],
        files=int(row["files"]),
    )
