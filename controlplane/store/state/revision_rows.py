"""Revisions of documents as rows.

Decides how many are kept. Works inside a transaction of its caller. Must not know what a document
means.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, func, insert, select

from amphitrite.controlplane.core.history.revisions import NOBODY, Author, Cause, Revision
from amphitrite.controlplane.core.observed.status import Ref
from amphitrite.controlplane.store.sql.tables import revisions
from amphitrite.controlplane.store.state.resource_rows import Row

#: The newest of an endpoint, whose history is that of its traffic, and of a deployment: twice as
#: many as Kubernetes keeps of its own.
KEPT_OF_ENDPOINT, KEPT_OF_DEPLOYMENT = 1000, 20


def created(connection: Connection, ref: Ref, number: int, document: Mapping[str, Any], by: Author, now: float) -> None:
    """The first revision of a new resource."""
    forget(connection, ref)
    _insert(connection, ref, number, document, by, by.cause or "create", now)


def replaced(
    connection: Connection, ref: Ref, former: Row, number: int, document: Mapping[str, Any], by: Author, now: float
) -> None:
    """A revision that follows ``former``, which may be older than revisions are."""
    if connection.execute(select(func.count()).select_from(revisions).where(_of(ref))).scalar() == 0:
        since = former["modified_at"]
        _insert(connection, ref, former["generation"], former["document"], NOBODY, "earlier", since)
    _insert(connection, ref, number, document, by, by.cause or "update", now)
    kept = KEPT_OF_ENDPOINT if ref.deployment is None else KEPT_OF_DEPLOYMENT
    newest = select(revisions.c.generation).where(_of(ref)).order_by(revisions.c.generation.desc())
    oldest = connection.execute(newest.offset(kept - 1).limit(1)).scalar()
    if oldest is not None:
        connection.execute(delete(revisions).where(_of(ref) & (revisions.c.generation < oldest)))


def forget(connection: Connection, ref: Ref) -> None:
    """Removes the revisions of a resource."""
    connection.execute(delete(revisions).where(_of(ref)))


def list_all(connection: Connection, ref: Ref) -> list[Revision]:
    """Oldest first."""
    query = select(revisions).where(_of(ref)).order_by(revisions.c.generation)
    return [
        Revision(row.generation, row.at, row.author, row.reason, row.cause, row.document)
        for row in connection.execute(query)
    ]


def _insert(
    connection: Connection,
    ref: Ref,
    number: int,
    document: Mapping[str, Any],
    by: Author,
    cause: Cause,
    now: float,
) -> None:
    connection.execute(
        insert(revisions).values(
            endpoint=ref.endpoint,
            deployment=ref.deployment or "",
            generation=number,
            at=now,
            author=by.name,
            reason=by.reason,
            cause=cause,
            document=dict(document),
        )
    )


def _of(ref: Ref) -> ColumnElement[bool]:
    return and_(revisions.c.endpoint == ref.endpoint, revisions.c.deployment == (ref.deployment or ""))
