"""Autoscale settings as rows.

Decides that a deployment has at most one. Must not know what a setting says. Every method raises
Error RuntimeUnavailable if the database does not answer. Names are compared without case.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, insert, select, update
from sqlalchemy import delete as delete_from

from amphitrite.controlplane.core.rules import preconditions
from amphitrite.controlplane.store.sql.tables import autoscale_settings
from amphitrite.controlplane.store.sql.transactions import Database
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key, nearest


@dataclass(frozen=True, slots=True)
class StoredSetting:
    """``name``: as the user wrote it. ``endpoint``, ``deployment``: the target, in lower case.
    ``body``: ``location``, ``tags`` and ``properties``, as they were sent. ``etag``: with quotes.
    Times: seconds since the epoch."""

    name: str
    endpoint: str
    deployment: str
    body: Mapping[str, Any]
    etag: str
    created_at: float
    modified_at: float


class StoredAutoscaleSettings:
    """Thread-safe."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(
        self,
        name: str,
        target: tuple[str, str],
        body: Mapping[str, Any],
        *,
        if_match: str | None,
        if_none_match: bool,
        now: float,
    ) -> tuple[StoredSetting, bool]:
        """Creates or replaces a setting. Returns it, and whether it is new.

        ``target``: endpoint and deployment. Raises Error Conflict (the target has another setting)
        or PreconditionFailed.
        """
        endpoint, deployment = (key(one) for one in target)
        with self._database.write() as connection:
            former = _find(connection, name)
            etag = None if former is None else former.etag
            preconditions.require(etag, name, if_match, if_none_match=if_none_match)
            other = _of_target(connection, endpoint, deployment)
            if other is not None and key(other.name) != key(name):
                message = f"the autoscale setting {other.name} scales {endpoint}/{deployment} already"
                hint = "change that one, or delete it; a deployment has at most one"
                raise Error("Conflict", message, target=other.name, hint=hint)
            values = {
                "endpoint": endpoint,
                "deployment": deployment,
                "body": dict(body),
                "etag": f'"{uuid.uuid4().hex}"',
                "modified_at": now,
            }
            if former is None:
                identity = {"key": key(name), "name": name, "created_at": now}
                connection.execute(insert(autoscale_settings).values(**identity, **values))
            else:
                at = autoscale_settings.c.key == key(name)
                connection.execute(update(autoscale_settings).where(at).values(**values))
            return _get(connection, name), former is None

    def get(self, name: str) -> StoredSetting:
        """Raises Error ResourceNotFound."""
        with self._database.read() as connection:
            return _get(connection, name)

    def of_deployment(self, endpoint: str, deployment: str) -> StoredSetting | None:
        """The setting whose target this is, whether it is enabled or not."""
        with self._database.read() as connection:
            return _of_target(connection, key(endpoint), key(deployment))

    def list_all(self) -> list[StoredSetting]:
        """Sorted by name."""
        with self._database.read() as connection:
            rows = connection.execute(select(autoscale_settings).order_by(autoscale_settings.c.key)).mappings()
            return [_setting(row) for row in rows]

    def delete(self, name: str, *, if_match: str | None) -> bool:
        """Returns whether it existed. Raises Error PreconditionFailed."""
        with self._database.write() as connection:
            found = _find(connection, name)
            preconditions.require(None if found is None else found.etag, name, if_match)
            at = autoscale_settings.c.key == key(name)
            return connection.execute(delete_from(autoscale_settings).where(at)).rowcount > 0


def _get(connection: Connection, name: str) -> StoredSetting:
    found = _find(connection, name)
    if found is None:
        names = [row.name for row in connection.execute(select(autoscale_settings.c.name))]
        near = nearest(name, names)
        hint = f"did you mean {near}?" if near else "list them with `ml monitor autoscale list`"
        raise Error("ResourceNotFound", f"the autoscale setting {name} does not exist", target=name, hint=hint)
    return found


def _find(connection: Connection, name: str) -> StoredSetting | None:
    query = select(autoscale_settings).where(autoscale_settings.c.key == key(name))
    row = connection.execute(query).mappings().first()
    return None if row is None else _setting(row)


def _of_target(connection: Connection, endpoint: str, deployment: str) -> StoredSetting | None:
    at = (autoscale_settings.c.endpoint == endpoint) & (autoscale_settings.c.deployment == deployment)
    row = connection.execute(select(autoscale_settings).where(at)).mappings().first()
    return None if row is None else _setting(row)


def _setting(row: RowMapping) -> StoredSetting:
    return StoredSetting(**{name: row[name] for name in StoredSetting.__dataclass_fields__})
