"""Environments: containers of versions, whose content never changes.

Decides which fields are content and which are metadata that may change, which versions lists show,
and which one is the latest. Must not know HTTP, or what runs an environment.
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

#: The content of an environment. As in Azure ML, versions are immutable: only the other fields may
#: change.
CONTENT: Final = ("image", "conda_file", "build", "inference_config", "os_type")
#: The values of content fields that are absent.
_DEFAULTS: Final[Mapping[str, Any]] = {"os_type": "linux"}
_CATALOGUE = Catalogue("environment", environments, environment_versions, environment_versions.c.environment)


@dataclass(frozen=True, slots=True)
class EnvironmentVersion:
    """``document``: the snake_case environment document; its ``conda_file`` is the content of the
    file. Times: seconds since the epoch."""

    name: str
    version: str
    document: Mapping[str, Any]
    is_anonymous: bool
    is_archived: bool
    created_at: float
    modified_at: float


class EnvironmentStore:
    """Thread-safe. Names are compared without case."""

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
        """Registers a version, or changes its metadata. Returns the version and whether it was
        created.

        ``document``: a valid snake_case environment document. Raises Error Conflict if the content
        differs from the registered one. Azure's SDK relies on that: it puts an environment without
        a version over the latest one, and takes the next number on a conflict.
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
        """Without anonymous versions; empty for an unknown name."""
        with self._database.read() as connection:
            query = _CATALOGUE.list_query(_CATALOGUE.rows(), name, view, order)
            return [_version(row) for row in connection.execute(query).mappings()]

    def latest(self, name: str) -> EnvironmentVersion:
        """The version of the label ``latest``: created last and not archived. Raises Error
        ResourceNotFound."""
        versions = self.list_versions(name)
        if not versions:
            raise _CATALOGUE.no_versions(name)
        return versions[0]

    def delete_versions(self, name: str, version: str | None) -> int:
        """Deletes a version, or all of ``name`` for None, and returns how many. The caller has
        refused what is in use."""
        with self._database.write() as connection:
            wanted = [one for one in _CATALOGUE.numbers(connection, name) if version in (None, one)]
            for one in wanted:
                _CATALOGUE.remove(connection, name, one)
            return len(wanted)

    def list_environments(self, view: View = "ActiveOnly", skip: int = 0, limit: int | None = None) -> list[Container]:
        """Containers sorted by name, without those that have only anonymous versions. ``skip`` and
        ``limit`` select a page."""
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
        """Archives or restores the environment. None keeps its tags or properties. Raises Error
        ResourceNotFound."""
        with self._database.write() as connection:
            return _CATALOGUE.set_container_archived(connection, name, archived, tags, properties, now)


def _refuse_other_content(row: RowMapping, document: Mapping[str, Any]) -> None:
    changed = [name for name in CONTENT if _content(row["document"], name) != _content(document, name)]
    if changed:
        name = f"{row['name']}:{row['version']}"
        raise Error(
            "Conflict",
            f"environment {name} is registered with different content ({', '.join(changed)}), which cannot change",
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
        raise _CATALOGUE.not_found(name, version)
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
