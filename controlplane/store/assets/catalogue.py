"""Catalogues of versioned assets: containers by name, and their versions.

Decides what lists show, which version is the latest and what the next number is, for all kinds of
assets. Works inside a transaction of its caller. Must not know the content of a version.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    Table,
    and_,
    delete,
    func,
    insert,
    select,
    update,
)

from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key

View = Literal["ActiveOnly", "ArchivedOnly", "All"]
Order = Literal["createdtime desc", "createdtime asc"]


@dataclass(frozen=True, slots=True)
class Container:
    """All versions of one name.

    ``latest_version``: created last. ``next_version``: the highest number + 1. Times: seconds since
    the epoch.
    """

    name: str
    latest_version: str | None
    next_version: str
    is_archived: bool
    tags: Mapping[str, str]
    properties: Mapping[str, str]
    created_at: float
    modified_at: float


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The catalogue of one ``kind`` of asset, such as ``model``.

    ``owner``: the column of ``versions`` with the container's key. Names are compared without case.
    """

    kind: str
    containers: Table
    versions: Table
    owner: Column[Any]

    def at(self, name: str, version: str) -> ColumnElement[bool]:
        """The SQL condition that selects one version."""
        return and_(self.owner == key(name), self.versions.c.version == version)

    def rows(self, *more: ColumnElement[Any]) -> Select[Any]:
        """Selects all versions with the ``name`` of their container and the columns ``more``."""
        of_container = self.containers.c.key == self.owner
        return select(self.versions, self.containers.c.name, *more).join(self.containers, of_container)

    def not_found(self, name: str, version: str | None = None) -> Error:
        """The error for a name, or a version of it, that does not exist."""
        asset = f"{self.kind} '{name}'"
        if version is None:
            hint = f"run `ml {self.kind} list` to see all names"
            return Error("ResourceNotFound", f"{asset} does not exist", target=name, hint=hint)
        hint = f"run `ml {self.kind} list -n {name}` to see its versions"
        return Error("ResourceNotFound", f"{asset} has no version '{version}'", target=f"{name}:{version}", hint=hint)

    def no_versions(self, name: str) -> Error:
        """The error for the label ``latest`` of a name without active versions."""
        hint = f"run `ml {self.kind} list` to see all names"
        return Error("ResourceNotFound", f"{self.kind} '{name}' has no version", target=name, hint=hint)

    def list_query(self, rows: Select[Any], name: str, view: View, order: Order) -> Select[Any]:
        """Limits ``rows`` to what a list of the versions of ``name`` shows, in ``order``.

        Anonymous versions are left out. A version counts as archived if it or its container is
        archived.
        """
        query = rows.where(self.owner == key(name), self.versions.c.is_anonymous.is_(False))
        if view != "All":
            archived = self.versions.c.is_archived | self.containers.c.is_archived
            query = query.where(archived if view == "ArchivedOnly" else ~archived)
        ordinal = self.versions.c.ordinal
        return query.order_by(ordinal.asc() if order == "createdtime asc" else ordinal.desc())

    def list_containers(
        self, connection: Connection, view: View, skip: int = 0, limit: int | None = None
    ) -> list[Container]:
        """Containers sorted by name, without those that have only anonymous versions.

        ``skip`` and ``limit`` select a page. It always takes two queries.
        """
        named = select(self.owner).where(self.versions.c.is_anonymous.is_(False))
        query = select(self.containers).where(self.containers.c.key.in_(named)).order_by(self.containers.c.key)
        if view != "All":
            query = query.where(self.containers.c.is_archived.is_(view == "ArchivedOnly"))
        rows = connection.execute(query.offset(skip).limit(limit)).mappings().all()
        if not rows:
            return []
        versions = select(self.owner, self.versions.c.version).order_by(self.versions.c.ordinal)
        by_owner: dict[str, list[str]] = defaultdict(list)
        for owner, version in connection.execute(versions.where(self.owner.between(rows[0]["key"], rows[-1]["key"]))):
            by_owner[owner].append(version)
        return [_container(row, by_owner[row["key"]]) for row in rows]

    def get_container(self, connection: Connection, name: str) -> Container:
        """Raises Error ResourceNotFound."""
        row = connection.execute(select(self.containers).where(self.containers.c.key == key(name))).mappings().first()
        if row is None:
            raise self.not_found(name)
        return _container(row, self.numbers(connection, name))

    def set_container_archived(
        self,
        connection: Connection,
        name: str,
        archived: bool,
        tags: Mapping[str, str] | None,
        properties: Mapping[str, str] | None,
        now: float,
    ) -> Container:
        """Archives or restores ``name``. None keeps its tags or properties. Raises Error
        ResourceNotFound."""
        values: dict[str, Any] = {"is_archived": archived, "modified_at": now}
        values |= {} if tags is None else {"tags": dict(tags)}
        values |= {} if properties is None else {"properties": dict(properties)}
        connection.execute(update(self.containers).where(self.containers.c.key == key(name)).values(**values))
        return self.get_container(connection, name)

    def add(self, connection: Connection, name: str, version: str, now: float, **content: Any) -> None:
        """Adds a version, which is now the latest of ``name``, and its container if it is the
        first."""
        if connection.execute(select(self.containers.c.key).where(self.containers.c.key == key(name))).first() is None:
            values = {"key": key(name), "name": name, "tags": {}, "properties": {}, "is_archived": False}
            connection.execute(insert(self.containers).values(**values, created_at=now, modified_at=now))
        highest = connection.execute(select(func.max(self.versions.c.ordinal)).where(self.owner == key(name))).scalar()
        place = {self.owner.name: key(name), "version": version, "ordinal": int(highest or 0) + 1}
        connection.execute(insert(self.versions).values(**place, **content, created_at=now, modified_at=now))

    def remove(self, connection: Connection, name: str, version: str) -> None:
        """Removes a version, and its container with the last one. Its number may be used again."""
        connection.execute(delete(self.versions).where(self.at(name, version)))
        if connection.execute(select(self.owner).where(self.owner == key(name)).limit(1)).first() is None:
            connection.execute(delete(self.containers).where(self.containers.c.key == key(name)))

    def numbers(self, connection: Connection, name: str) -> list[str]:
        """All versions of ``name``, anonymous ones too, in order of creation."""
        query = select(self.versions.c.version).where(self.owner == key(name)).order_by(self.versions.c.ordinal)
        return list(connection.execute(query).scalars())


def _container(row: RowMapping, versions: Sequence[str]) -> Container:
    """``versions``: in order of creation."""
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
