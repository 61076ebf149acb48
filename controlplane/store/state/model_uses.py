"""When each model version was last used.

Decides that a use counts when a deployment begins or ends it; in between somebody marks it every
now and then. Works inside a transaction of its caller. Must not know what runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, update

from amphitrite.controlplane.store.sql.tables import model_versions
from amphitrite.schemas.names import key


def mark(connection: Connection, used: Iterable[tuple[str, str]], now: float) -> None:
    """``used``: (name, version) of models that are or were in use at ``now``."""
    for name, version in sorted({(key(name), version) for name, version in used}):
        this = (model_versions.c.model == name) & (model_versions.c.version == version)
        connection.execute(update(model_versions).where(this).values(used_at=now))


def of_model(model: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """The version that a deployment's column ``model`` names; none for None."""
    return [] if model is None else [(str(model["name"]), str(model["version"]))]
