"""Catalogues of numbered assets: containers by name, and their versions.

Decides what lists show, which version is newest and what the next number is, for each kind of asset alike. Works inside
a transaction of its caller. Must not know what a version's content is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Column, ColumnElement, Connection, RowMapping, Select, Table, and_, func, insert, select, update

from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key

View = Literal["ActiveOnly", "ArchivedOnly", "All"]
Order = Literal["createdtime desc", "createdtime asc"]


@dataclass(frozen=True, slots=True)
class Container:
    """All versions of one name. ``latest_version``: created last; ``next_version``: the highest number + 1. Times:
    seconds since the epoch."""

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
    """Of one kind of asset, which users call ``word``. ``owner``: the column of ``versions`` with the container's key.
    Names compare without case."""

    word: str
    containers: Table
    versions: Table
    owner: Column[Any]

    def at(self, name: str, version: str) -> ColumnElement[bool]:
        """The condition that selects one version."""
        return and_(self.owner == key(name), self.versions.c.version == version)

    def rows(self, *more: ColumnElement[Any]) -> Select[Any]:
        """Selects every version with the ``name`` of its container, and ``more``."""
        of_container = self.containers.c.key == self.owner
        return select(self.versions, self.containers.c.name, *more).join(self.containers, of_container)

    def missing(self, name: str, version: str | None = None) -> Error:
        """The Error for a name, or a version of it, that is not there."""
        asset = f"{self.word} '{name}'"
        if version is None:
            hint = f"`ml {self.word} list` shows all"
            return Error("ResourceNotFound", f"no {asset}", target=name, hint=hint)
        hint = f"`ml {self.word} list -n {name}` shows all"
        return Error("ResourceNotFound", f"no version '{version}' of {asset}", target=f"{name}:{version}", hint=hint)

    def without_versions(self, name: str) -> Error:
        """The Error for a name of which the label ``latest`` means nothing."""
        hint = f"`ml {self.word} list` shows all"
        return Error("ResourceNotFound", f"no version of {self.word} '{name}'", target=name, hint=hint)

    def listed(self, rows: Select[Any], name: str, view: View, order: Order) -> Select[Any]:
        """Of ``rows``, what a list of the versions of ``name`` shows: none that is anonymous. A version is hidden as
        archived by itself or with its container."""
        query = rows.where(self.owner == key(name), self.versions.c.is_anonymous.is_(False))
        if view != "All":
            archived = self.versions.c.is_archived | self.containers.c.is_archived
            query = query.where(archived if view == "ArchivedOnly" else ~archived)
        ordinal = self.versions.c.ordinal
        return query.order_by(ordinal.asc() if order == "createdtime asc" else ordinal.desc())

    def list_containers(
        self, connection: Connection, view: View, skip: int = 0, limit: int | None = None
    ) -> list[Container]:
        """Sorted by name, without those that only have anonymous versions; ``skip`` and ``limit`` choose a part. In two
        queries, however many there are."""
        named = select(self.owner).where(self.versions.c.is_anonymous.is_(False))
        query = select(self.containers).where(self.containers.c.key.in_(named)).order_by(self.containers.c.key)
        if view != "All":
            query = query.where(self.containers.c.is_archived.is_(view == "ArchivedOnly"))
        rows = connection.execute(query.offset(skip).limit(limit)).mappings().all()
        if not rows:
            return []
        versions = select(self.owner, self.versions.c.version).order_by(self.versions.c.ordinal)
        found: dict[str, list[str]] = defaultdict(list)
        for owner, version in connection.execute(versions.where(self.owner.between(rows[0]["key"], rows[-1]["key"]))):
            found[owner].append(version)
        return [_container(row, found[row["key"]]) for row in rows]

    def get_container(self, connection: Connection, name: str) -> Container:
        """Raises Error ResourceNotFound."""
        found = connection.execute(select(self.containers).where(self.containers.c.key == key(name))).mappings().first()
        if found is None:
            raise self.missing(name)
        query = select(self.versions.c.version).where(self.owner == key(name)).order_by(self.versions.c.ordinal)
        return _container(found, connection.execute(query).scalars().all())

    def set_container_archived(
        self,
        connection: Connection,
        name: str,
        archived: bool,
        tags: Mapping[str, str] | None,
        properties: Mapping[str, str] | None,
        now: float,
    ) -> Container:
        """Hide ``name`` from lists, or show it again; None leaves tags or properties as they are. Raises Error
        ResourceNotFound."""
        values: dict[str, Any] = {"is_archived": archived, "modified_at": now}
        values |= {} if tags is None else {"tags": dict(tags)}
        values |= {} if properties is None else {"properties": dict(properties)}
        connection.execute(update(self.containers).where(self.containers.c.key == key(name)).values(**values))
        return self.get_container(connection, name)

    def add(self, connection: Connection, name: str, version: str, now: float, **content: Any) -> None:
        """The row of a new version, the newest of ``name``; with the first one its container."""
        if connection.execute(select(self.containers.c.key).where(self.containers.c.key == key(name))).first() is None:
            values = {"key": key(name), "name": name, "tags": {}, "properties": {}, "is_archived": False}
            connection.execute(insert(self.containers).values(**values, created_at=now, modified_at=now))
        highest = connection.execute(select(func.max(self.versions.c.ordinal)).where(self.owner == key(name))).scalar()
        place = {self.owner.name: key(name), "version": version, "ordinal": int(highest or 0) + 1}
        connection.execute(insert(self.versions).values(**place, **content, created_at=now, modified_at=now))


def _container(row: RowMapping, versions: Sequence[str]) -> Container:
    """``versions``: in the order of their creation."""
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
