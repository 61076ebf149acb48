"""Statuses from the reconciler, stored beside what the user wants.

Decides whether a status is about the newest generation or out of date. Works inside a write
transaction of its caller. Must not know documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, update

from amphitrite.controlplane.core.observed.status import Ref, Status
from amphitrite.controlplane.store.state import operation_rows, resource_rows
from amphitrite.controlplane.store.state.store import Operation


def record(
    connection: Connection, ref: Ref, status: Status, open_operations: Sequence[Operation], *, now: float
) -> None:
    """Stores ``status`` of ``ref`` and advances its operations. Does nothing if the resource is
    gone.

    The user may have changed the resource after the reconciler observed it. Then the outcome
    belongs to an earlier generation: it ends that generation's operations, and the resource still
    shows that a change is in progress.
    """
    row = resource_rows.find(connection, ref)
    if row is None or 0 < status.observed_generation < row["first_generation"]:
        return  # It is gone, or the status is about an earlier resource of this name.
    observed = min(max(status.observed_generation, row["observed_generation"]), row["generation"])
    values: dict[str, Any] = {"observed_generation": observed, "facts": dict(status.facts)}
    late = _is_outcome(status) and (status.observed_generation < row["generation"] or row["deleting"])
    if not late:
        values |= {"state": status.state, "phase": status.phase, "message": status.message}
        values["error"] = None if status.error is None else status.error.to_body()
    if row["deleting"]:
        values["state"] = "Deleting"
    if status.state == "Succeeded" and status.observed_generation:
        values["ever_succeeded"] = True
    changed = {name: value for name, value in values.items() if not resource_rows.same(row[name], value)}
    if changed:
        connection.execute(update(resource_rows.table_of(ref)).where(resource_rows.at(ref)).values(**changed))
    for operation in open_operations:
        if late and operation.generation > observed:
            continue
        # A deletion ends all other operations when it has finished: see
        # ``operation_rows.end_removed``.
        operation_rows.advance(connection, operation, status, -1 if row["deleting"] else observed, now=now)


def _is_outcome(status: Status) -> bool:
    return status.state in ("Succeeded", "Failed")
