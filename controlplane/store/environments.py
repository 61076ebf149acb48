"""Environments: containers of versions, and the versions, whose content never changes.

Decides which fields are content and which may be changed later, which versions lists show, and which one is newest.
Must not know HTTP, or what runs an environment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, and_, func, insert, select, update

from amphitrite.controlplane.store.catalogue import Container, Order, View, container, containers
from amphitrite.controlplane.store.tables import environment_versions, environments
from amphitrite.controlplane.store.transactions import Database
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key

#: What makes an environment; the rest of its document says something about it. Azure ML's versions are immutable, too:
#: only what describes one may be changed.
CONTENT: Final = ("image", "conda_file", "build", "inference_config", "os_type")
#: What an absent field of the content means.
_DEFAULTS: Final[Mapping[str, Any]] = {"os_type": "linux"}


@dataclass(frozen=True, slots=True)
class EnvironmentVersion:
    """``document``: the snake_case environment document, its ``conda_file`` the text of the file. Times: seconds since
    the epoch."""

    name: str
    version: str
    document: Mapping[str, Any]
    is_anonymous: bool
    is_archived: bool
    created_at: float
    modified_at: float


class EnvironmentStore:
    """Thread-safe. Names compare without case."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put_version(
        self,
        name: str,
        version: str,
        document: Mapping[str, Any],
        *,
        is_anonymous: bool = False,
        is_archived: bool = False,
        now: float,
    ) -> tuple[EnvironmentVersion, bool]:
        """Register a version, or change what may change of one: everything but its content. Returns (it, created).

        ``document``: a valid snake_case environment document. Raises Error Conflict for other content than registered:
        by it Azure's SDK, which puts an environment without a version over the newest, knows that it needs the next.
        """
        flags = {"is_anonymous": is_anonymous, "is_archived": is_archived, "modified_at": now}
        with self._database.write() as connection:
            row = _find(connection, name, version)
            if row is not None:
                _refuse_other_content(row, document)
                values = {"document": dict(document), **flags}
                connection.execute(update(environment_versions).where(_at(name, version)).values(**values))
                return _get(connection, name, version), False
            _touch_container(connection, name, now)
            connection.execute(
                insert(environment_versions).values(
                    environment=key(name),
                    version=version,
                    ordinal=_next_ordinal(connection, name),
                    document=dict(document),
                    created_at=now,
                    **flags,
                )
            )
            return _get(connection, name, version), True

    def get_version(self, name: str, version: str) -> EnvironmentVersion:
        """Raises Error ResourceNotFound."""
        with self._database.read() as connection:
            return _get(connection, name, version)

    def list_versions(
        self, name: str, view: View = "ActiveOnly", order: Order = "createdtime desc"
    ) -> list[EnvironmentVersion]:
        """Without anonymous ones; empty for an unknown name. A version is hidden as archived by itself or with its
        container."""
        named = environment_versions.c.is_anonymous.is_(False)
        query = _versions().where(environment_versions.c.environment == key(name), named)
        if view != "All":
            archived = environment_versions.c.is_archived | environments.c.is_archived
            query = query.where(archived if view == "ArchivedOnly" else ~archived)
        ordinal = environment_versions.c.ordinal
        query = query.order_by(ordinal.asc() if order == "createdtime asc" else ordinal.desc())
        with self._database.read() as connection:
            return [_version(row) for row in connection.execute(query).mappings()]

    def latest(self, name: str) -> EnvironmentVersion:
        """What the label ``latest`` means: the version created last that is not archived. Raises Error
        ResourceNotFound."""
        found = self.list_versions(name)
        if not found:
            hint = "`ml environment list` shows all"
            raise Error("ResourceNotFound", f"no version of environment '{name}'", target=name, hint=hint)
        return found[0]

    def list_environments(self, view: View = "ActiveOnly", skip: int = 0, limit: int | None = None) -> list[Container]:
        """Sorted by name, without those that only have anonymous versions; ``skip`` and ``limit`` choose a part."""
        named = select(environment_versions.c.environment).where(environment_versions.c.is_anonymous.is_(False))
        query = select(environments).where(environments.c.key.in_(named)).order_by(environments.c.key)
        if view != "All":
            query = query.where(environments.c.is_archived.is_(view == "ArchivedOnly"))
        owner = environment_versions.c.environment
        versions = select(owner, environment_versions.c.version).order_by(environment_versions.c.ordinal)
        with self._database.read() as connection:
            rows = connection.execute(query.offset(skip).limit(limit)).mappings().all()
            return containers(connection, rows, versions, owner)

    def get_container(self, name: str) -> Container:
        """Raises Error ResourceNotFound."""
        with self._database.read() as connection:
            return _container(connection, name)

    def set_container_archived(
        self,
        name: str,
        archived: bool,
        *,
        tags: Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
        now: float,
    ) -> Container:
        """Hide the environment from lists, or show it again; None leaves tags or properties as they are. Raises Error
        ResourceNotFound."""
        values: dict[str, Any] = {"is_archived": archived, "modified_at": now}
        values |= {} if tags is None else {"tags": dict(tags)}
        values |= {} if properties is None else {"properties": dict(properties)}
        with self._database.write() as connection:
            connection.execute(update(environments).where(environments.c.key == key(name)).values(**values))
            return _container(connection, name)


def _refuse_other_content(row: RowMapping, document: Mapping[str, Any]) -> None:
    changed = [name for name in CONTENT if _content(row["document"], name) != _content(document, name)]
    if changed:
        name = f"{row['name']}:{row['version']}"
        raise Error(
            "Conflict",
            f"environment {name} is registered with other content ({', '.join(changed)}), and a version never changes",
            target=changed[0],
            hint="register it as a new version; description, tags and properties can be changed",
        )


def _content(document: Mapping[str, Any], name: str) -> Any:
    return document.get(name, _DEFAULTS.get(name))


def _at(name: str, version: str) -> ColumnElement[bool]:
    return and_(environment_versions.c.environment == key(name), environment_versions.c.version == version)


def _versions() -> Select[Any]:
    """Rows of versions with the name that :func:`_version` needs."""
    owner = environments.c.key == environment_versions.c.environment
    return select(environment_versions, environments.c.name).join(environments, owner)


def _find(connection: Connection, name: str, version: str) -> RowMapping | None:
    return connection.execute(_versions().where(_at(name, version))).mappings().first()


def _get(connection: Connection, name: str, version: str) -> EnvironmentVersion:
    row = _find(connection, name, version)
    if row is None:
        raise Error(
            "ResourceNotFound",
            f"no version '{version}' of environment '{name}'",
            target=f"{name}:{version}",
            hint=f"`ml environment list -n {name}` shows all",
        )
    return _version(row)


def _container(connection: Connection, name: str) -> Container:
    row = connection.execute(select(environments).where(environments.c.key == key(name))).mappings().first()
    if row is None:
        hint = "`ml environment list` shows all"
        raise Error("ResourceNotFound", f"no environment '{name}'", target=name, hint=hint)
    query = select(environment_versions.c.version).where(environment_versions.c.environment == key(name))
    versions: Sequence[str] = connection.execute(query.order_by(environment_versions.c.ordinal)).scalars().all()
    return container(row, versions)


def _touch_container(connection: Connection, name: str, now: float) -> None:
    """Make the container of a first version."""
    if connection.execute(select(environments.c.key).where(environments.c.key == key(name))).first() is None:
        values = {"key": key(name), "name": name, "tags": {}, "properties": {}, "is_archived": False}
        connection.execute(insert(environments).values(**values, created_at=now, modified_at=now))


def _next_ordinal(connection: Connection, name: str) -> int:
    highest = select(func.max(environment_versions.c.ordinal)).where(environment_versions.c.environment == key(name))
    return int(connection.execute(highest).scalar() or 0) + 1


def _version(row: RowMapping) -> EnvironmentVersion:
    return EnvironmentVersion(
        name=row["name"],
        version=row["version"],
        document=row["document"],
        is_anonymous=row["is_anonymous"],
        is_archived=row["is_archived"],
        created_at=row["created_at"],
        modified_at=row["modified_at"],
    )
