"""Environments: containers of versions, and the versions, whose content never changes.

Decides which fields are content and which may be changed later, which versions lists show, and which one is newest.
Must not know HTTP, or what runs an environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, RowMapping, update

from amphitrite.controlplane.store.assets.catalogue import Catalogue, Container, Order, View
from amphitrite.controlplane.store.sql.tables import environment_versions, environments
from amphitrite.controlplane.store.sql.transactions import Database
from amphitrite.schemas.errors import Error

#: What makes an environment; the rest of its document says something about it. Azure ML's versions are immutable, too:
#: only what describes one may be changed.
CONTENT: Final = ("image", "conda_file", "build", "inference_config", "os_type")
#: What an absent field of the content means.
_DEFAULTS: Final[Mapping[str, Any]] = {"os_type": "linux"}
_CATALOGUE = Catalogue("environment", environments, environment_versions, environment_versions.c.environment)


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
        flags = {"is_anonymous": is_anonymous, "is_archived": is_archived}
        with self._database.write() as connection:
            row = _find(connection, name, version)
            if row is not None:
                _refuse_other_content(row, document)
                values = {"document": dict(document), **flags, "modified_at": now}
                connection.execute(update(environment_versions).where(_CATALOGUE.at(name, version)).values(**values))
                return _get(connection, name, version), False
            _CATALOGUE.add(connection, name, version, now, document=dict(document), **flags)
            return _get(connection, name, version), True

    def get_version(self, name: str, version: str) -> EnvironmentVersion:
        """Raises Error ResourceNotFound."""
        with self._database.read() as connection:
            return _get(connection, name, version)

    def list_versions(
        self, name: str, view: View = "ActiveOnly", order: Order = "createdtime desc"
    ) -> list[EnvironmentVersion]:
        """Without anonymous ones; empty for an unknown name."""
        with self._database.read() as connection:
            listed = _CATALOGUE.listed(_CATALOGUE.rows(), name, view, order)
            return [_version(row) for row in connection.execute(listed).mappings()]

    def latest(self, name: str) -> EnvironmentVersion:
        """What the label ``latest`` means: the version created last that is not archived. Raises Error
        ResourceNotFound."""
        found = self.list_versions(name)
        if not found:
            raise _CATALOGUE.without_versions(name)
        return found[0]

    def list_environments(self, view: View = "ActiveOnly", skip: int = 0, limit: int | None = None) -> list[Container]:
        """Sorted by name, without those that only have anonymous versions; ``skip`` and ``limit`` choose a part."""
        with self._database.read() as connection:
            return _CATALOGUE.list_containers(connection, view, skip, limit)

    def get_container(self, name: str) -> Container:
        """Raises Error ResourceNotFound."""
        with self._database.read() as connection:
            return _CATALOGUE.get_container(connection, name)

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
        with self._database.write() as connection:
            return _CATALOGUE.set_container_archived(connection, name, archived, tags, properties, now)


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


def _find(connection: Connection, name: str, version: str) -> RowMapping | None:
    return connection.execute(_CATALOGUE.rows().where(_CATALOGUE.at(name, version))).mappings().first()


def _get(connection: Connection, name: str, version: str) -> EnvironmentVersion:
    row = _find(connection, name, version)
    if row is None:
        raise _CATALOGUE.missing(name, version)
    return _version(row)


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
