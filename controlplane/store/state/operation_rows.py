"""Long-running operations: how they begin, record progress and end.

Decides which operations a status ends, how much progress is stored and for how long. Works inside a
transaction of its caller. Must not know documents.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, RowMapping, and_, delete, insert, select, update

from amphitrite.controlplane.core.observed.status import Ref, Status
from amphitrite.controlplane.store.sql.tables import operations
from amphitrite.controlplane.store.state.store import Operation
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key

Verb = Literal["create", "update", "delete", "regenerateKeys"]

#: The form of ``store.operation_alias``. Names have no colon.
_ALIAS = re.compile(r"(?:oeidp:([^:]+)|odidp:([^:]+):([^:]+)):([0-9]{1,18})")

RETENTION_S = 7 * 24 * 3600.0
#: A crash loop keeps adding progress; after this many entries the last one is replaced.
MAX_PHASES = 200


def begin(
    connection: Connection, ref: Ref, verb: Verb, generation: int, *, now: float, ended: bool = False
) -> Operation:
    """A new operation. ``ended``: it has Succeeded at once, because the change changes nothing.

    Also deletes operations whose retention has ended.
    """
    old = and_(operations.c.status != "InProgress", operations.c.ended_at < now - RETENTION_S)
    connection.execute(delete(operations).where(old))
    status: Literal["Succeeded", "InProgress"] = "Succeeded" if ended else "InProgress"
    operation = Operation(
        str(uuid.uuid4()), ref, verb, generation, status, now, now if ended else None, phases=(), error=None
    )
    connection.execute(
        insert(operations).values(
            id=operation.id,
            endpoint=ref.endpoint,
            deployment=ref.deployment,
            verb=verb,
            generation=generation,
            status=status,
            started_at=now,
            ended_at=operation.ended_at,
            phases=[],
        )
    )
    return operation


def get(connection: Connection, operation_id: str) -> Operation:
    """By its id, or by ``store.operation_alias``. Raises Error ResourceNotFound."""
    alias = _ALIAS.fullmatch(operation_id)
    query = select(operations).where(operations.c.id == operation_id)
    if alias is not None:
        endpoint, parent, deployment, generation = alias.groups()
        ref = Ref(key(endpoint)) if endpoint else Ref(key(parent), key(deployment))
        # Without an operation of its own, a generation came of the one before: an endpoint's
        # deletion deletes its deployments.
        query = select(operations).where(_of(ref), operations.c.generation <= int(generation))
        query = query.order_by(operations.c.generation.desc(), operations.c.started_at.desc())
    row = connection.execute(query.limit(1)).mappings().first()
    if row is None:
        days = int(RETENTION_S // 86400)
        raise Error(
            "ResourceNotFound",
            f"operation {operation_id} does not exist",
            target=operation_id,
            hint=f"operations are kept for {days} days after they end",
        )
    return _operation(row)


def open_delete(connection: Connection, ref: Ref) -> Operation | None:
    """The deletion of ``ref`` that is in progress, None if there is none."""
    query = select(operations).where(_of(ref), operations.c.status == "InProgress", operations.c.verb == "delete")
    row = connection.execute(query).mappings().first()
    return None if row is None else _operation(row)


def all_open(connection: Connection) -> Mapping[Ref, list[Operation]]:
    """All operations in progress, oldest first."""
    by_ref: dict[Ref, list[Operation]] = {}
    query = select(operations).where(operations.c.status == "InProgress").order_by(operations.c.started_at)
    for row in connection.execute(query).mappings():
        operation = _operation(row)
        by_ref.setdefault(operation.ref, []).append(operation)
    return by_ref


def advance(connection: Connection, operation: Operation, status: Status, observed: int, *, now: float) -> None:
    """Records a changed phase, and ends the operation if ``observed`` reaches its generation.

    A deletion ends with ``end_removed`` instead.
    """
    values: dict[str, Any] = {}
    phases = [list(entry) for entry in operation.phases]
    if status.phase and (not phases or phases[-1][:2] != [status.phase, status.message]):
        del phases[MAX_PHASES - 1 :]
        values["phases"] = [*phases, [status.phase, status.message, now]]
    if operation.verb != "delete" and operation.generation <= observed:
        failed = status.state == "Failed"
        values |= {"status": "Failed" if failed else "Succeeded", "ended_at": now}
        if failed:
            error = status.error or Error("ResourceNotReady", status.message or "the change failed")
            values["error"] = error.to_body()
    if values:
        connection.execute(update(operations).where(operations.c.id == operation.id).values(**values))


def end_removed(connection: Connection, refs: Sequence[Ref], *, now: float) -> None:
    """Ends the operations of removed resources: deletions have Succeeded, all others are
    Canceled."""
    for ref in refs:
        open_operations = and_(_of(ref), operations.c.status == "InProgress")
        gone = update(operations).where(open_operations, operations.c.verb == "delete")
        connection.execute(gone.values(status="Succeeded", ended_at=now))
        canceled = Error("OperationCanceled", "the resource was deleted before the change took effect")
        others = update(operations).where(open_operations)
        connection.execute(others.values(status="Canceled", ended_at=now, error=canceled.to_body()))


def _of(ref: Ref) -> ColumnElement[bool]:
    return and_(operations.c.endpoint == ref.endpoint, operations.c.deployment.is_not_distinct_from(ref.deployment))


def _operation(row: RowMapping) -> Operation:
    return Operation(
        id=row["id"],
        ref=Ref(row["endpoint"], row["deployment"]),
        verb=row["verb"],
        generation=row["generation"],
        status=row["status"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        phases=tuple((phase, message, entered_at) for phase, message, entered_at in row["phases"]),
        error=None if row["error"] is None else Error.from_body(row["error"]),
    )
