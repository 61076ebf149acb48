"""Reading the catalogue of models.

Decides what lists show, which version is newest and what the next number is. Works inside a transaction of its caller.
Must not know files on the disk.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, and_, func, insert, select

from amphitrite.controlplane.store.manifests import File
from amphitrite.controlplane.store.tables import model_files, model_versions, models
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key

View = Literal["ActiveOnly", "ArchivedOnly", "All"]
Order = Literal["createdtime desc", "createdtime asc"]


@dataclass(frozen=True, slots=True)
class ModelVersion:
    """``document``: the snake_case model document. ``digest``: of the manifest; ``size``: bytes of all files.
    ``model_names``: the Triton models in it. Times: seconds since the epoch."""

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


@dataclass(frozen=True, slots=True)
class Container:
    """All versions of one name, of a model or an environment. ``latest_version``: created last; ``next_version``: the
    highest number + 1."""

    name: str
    latest_version: str | None
    next_version: str
    is_archived: bool
    tags: Mapping[str, str]
    properties: Mapping[str, str]
    created_at: float
    modified_at: float


def at(name: str, version: str) -> ColumnElement[bool]:
    """The condition that selects one version."""
    return and_(model_versions.c.model == key(name), model_versions.c.version == version)


def find_version(connection: Connection, name: str, version: str) -> RowMapping | None:
    return connection.execute(_versions().where(at(name, version))).mappings().first()


def get_version(connection: Connection, name: str, version: str) -> ModelVersion:
    """Raises Error ResourceNotFound."""
    row = find_version(connection, name, version)
    if row is None:
        raise Error(
            "ResourceNotFound",
            f"no version '{version}' of model '{name}'",
            target=f"{name}:{version}",
            hint=f"`ml model list -n {name}` shows all",
        )
    return _version(row)


def list_versions(connection: Connection, name: str, view: View, order: Order) -> list[ModelVersion]:
    """A version is hidden as archived by itself or with its container."""
    query = _versions().where(model_versions.c.model == key(name), model_versions.c.is_anonymous.is_(False))
    if view != "All":
        archived = model_versions.c.is_archived | models.c.is_archived
        query = query.where(archived if view == "ArchivedOnly" else ~archived)
    ordinal = model_versions.c.ordinal
    query = query.order_by(ordinal.asc() if order == "createdtime asc" else ordinal.desc())
    return [_version(row) for row in connection.execute(query).mappings()]


def anonymous_version(connection: Connection, name: str, version: str, kind: str | None) -> str:
    """Where anonymous files of type ``kind`` belong. Clients call them by their content and version 1, whatever type
    they say: another type is another version, or the same directory could not be deployed in two ways."""
    columns = (model_versions.c.version, model_versions.c.document, model_versions.c.is_anonymous)
    rows = connection.execute(
        select(*columns).where(model_versions.c.model == key(name)).order_by(model_versions.c.ordinal)
    ).all()
    if not any(row.version == version and row.is_anonymous for row in rows):
        return version
    same = [row.version for row in rows if row.is_anonymous and row.document.get("type") == kind]
    return same[0] if same else str(len(rows) + 1)


def list_containers(connection: Connection, view: View, skip: int = 0, limit: int | None = None) -> list[Container]:
    """In two queries, however many there are."""
    named = select(model_versions.c.model).where(model_versions.c.is_anonymous.is_(False))
    query = select(models).where(models.c.key.in_(named)).order_by(models.c.key)
    if view != "All":
        query = query.where(models.c.is_archived.is_(view == "ArchivedOnly"))
    rows = connection.execute(query.offset(skip).limit(limit)).mappings().all()
    of_these = select(model_versions.c.model, model_versions.c.version).order_by(model_versions.c.ordinal)
    return containers(connection, rows, of_these, model_versions.c.model)


def get_container(connection: Connection, name: str) -> Container:
    """Raises Error ResourceNotFound."""
    row = connection.execute(select(models).where(models.c.key == key(name))).mappings().first()
    if row is None:
        raise Error("ResourceNotFound", f"no model '{name}'", target=name, hint="`ml model list` shows all")
    query = select(model_versions.c.version).where(model_versions.c.model == key(name))
    return container(row, connection.execute(query.order_by(model_versions.c.ordinal)).scalars().all())


def touch_container(connection: Connection, name: str, now: float) -> None:
    """Make the container of a first version."""
    if connection.execute(select(models.c.key).where(models.c.key == key(name))).first() is None:
        connection.execute(
            insert(models).values(
                key=key(name), name=name, tags={}, properties={}, is_archived=False, created_at=now, modified_at=now
            )
        )


def next_ordinal(connection: Connection, name: str) -> int:
    highest = select(func.max(model_versions.c.ordinal)).where(model_versions.c.model == key(name))
    return int(connection.execute(highest).scalar() or 0) + 1


def manifest(connection: Connection, digest: str) -> list[File]:
    """The files of any version with this digest, sorted by path; empty when there is none."""
    owner = select(model_versions.c.model, model_versions.c.version).where(model_versions.c.digest == digest)
    row = connection.execute(owner.limit(1)).first()
    if row is None:
        return []
    of_owner = and_(model_files.c.model == row.model, model_files.c.version == row.version)
    found = connection.execute(select(model_files).where(of_owner).order_by(model_files.c.path))
    return [File(file.path, file.digest, file.size, file.blob_path) for file in found]


def _versions() -> Select[Any]:
    """Rows of versions with the name and the size that :func:`_version` needs."""
    of_version = and_(model_files.c.model == model_versions.c.model, model_files.c.version == model_versions.c.version)
    size = select(func.sum(model_files.c.size)).where(of_version).scalar_subquery()
    return select(model_versions, models.c.name, size.label("size")).join(
        models, models.c.key == model_versions.c.model
    )


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
    )


def containers(
    connection: Connection, rows: Sequence[RowMapping], versions: Select[Any], owner: ColumnElement[str]
) -> list[Container]:
    """Of rows that are sorted by ``key``. ``versions`` selects (key, version) of any, in the order of their creation;
    ``owner`` is the former column."""
    if not rows:
        return []
    found: dict[str, list[str]] = defaultdict(list)
    for key_, version in connection.execute(versions.where(owner.between(rows[0]["key"], rows[-1]["key"]))):
        found[key_].append(version)
    return [container(row, found[row["key"]]) for row in rows]


def container(row: RowMapping, versions: Sequence[str]) -> Container:
    """Of a row of ``models`` or ``environments`` and its versions in the order of their creation."""
    numbers = [int(version) for version in versions if version.isascii() and version.isdigit()]
    return Container(
        name=row["name"],
        latest_version=versions[-1] if versions else None,
        next_version=str(max(numbers, default=0) + 1),
        is_archived=row["is_archived"],
        tags=row["tags"],
        properties=row["properties"],
        created_at=row["created_at"],
        modified_at=row["modified_at"],
    )
