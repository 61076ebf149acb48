"""The effect of a user's change on a row: preconditions, generation, state and operation.

Decides what counts as a change and what state it leads to. Works inside a write transaction of its
caller. Must not know how the reconciler acts on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, insert, select, update

from amphitrite.controlplane.core.history.revisions import Author
from amphitrite.controlplane.core.observed.status import Ref, State
from amphitrite.controlplane.core.rules import preconditions
from amphitrite.controlplane.store.sql.tables import counters
from amphitrite.controlplane.store.state import operation_rows, resource_rows, revision_rows
from amphitrite.controlplane.store.state.store import Operation
from amphitrite.schemas.errors import Error

_RETIRED = "retired_generation"
#: Columns that hold what a deployment's references resolve to.
RESOLVED = ("model", "compute")


def put(
    connection: Connection,
    ref: Ref,
    document: Mapping[str, Any],
    extra: Mapping[str, Any],
    *,
    if_match: str | None,
    if_none_match: bool,
    now: float,
    by: Author,
) -> Operation:
    """Creates or replaces the row of ``ref``, and keeps the document as a revision.

    ``extra``: more columns. On creation all of them are stored. On replacement only those in
    ``RESOLVED`` are compared and stored. Raises what ``store.Store.put_endpoint`` raises.
    """
    row = resource_rows.find(connection, ref)
    require_conditions(row, ref, if_match, if_none_match)
    if row is None:
        return _create(connection, ref, document, extra, now, by)
    refuse_deleting(row, ref)
    # The first spelling of the name is kept: names are equal without case, and URLs contain them.
    document = {**document, "name": row["name"]}
    resolved = {name: extra[name] for name in RESOLVED if name in extra}
    if resource_rows.same(document, row["document"]) and _same_resolved(row, resolved):
        return unchanged(connection, ref, row, now)
    generation = row["generation"] + 1
    values = {"document": document, "etag": _etag(generation), "modified_at": now, **resolved}
    _change(connection, ref, generation, _state_after(row, document, resolved), values)
    revision_rows.replaced(connection, ref, row, generation, document, by, now)
    return operation_rows.begin(connection, ref, "update", generation, now=now)


def mark_deleting(connection: Connection, ref: Ref, row: resource_rows.Row) -> int:
    """Marks the row as deleting. Returns the generation of the deletion."""
    generation = int(row["generation"]) + 1
    _change(connection, ref, generation, "Deleting", {"deleting": True})
    return generation


def set_columns(connection: Connection, ref: Ref, row: resource_rows.Row, values: Mapping[str, Any]) -> int:
    """Changes columns that are not part of the document. Returns the new generation."""
    generation = int(row["generation"]) + 1
    _change(connection, ref, generation, "Updating", values)
    return generation


def set_pause(
    connection: Connection, ref: Ref, row: resource_rows.Row, paused: bool, *, now: float, by: Author
) -> Operation:
    """Pauses or resumes a deployment. Its history keeps who did so. Without a change there is an
    operation too, as for an unchanged document."""
    if (row["paused_at"] is not None) == paused:
        return unchanged(connection, ref, row, now)
    values = {"paused_at": now if paused else None, "paused_by": by.name if paused else None, "modified_at": now}
    generation = set_columns(connection, ref, row, values)
    revision_rows.replaced(connection, ref, row, generation, row["document"], by, now)
    return operation_rows.begin(connection, ref, "update", generation, now=now)


def require_conditions(row: resource_rows.Row | None, ref: Ref, if_match: str | None, if_none_match: bool) -> None:
    """Checks the preconditions of a write of ``row``. Raises Error PreconditionFailed."""
    target = ref.endpoint if ref.deployment is None else f"{ref.endpoint}/{ref.deployment}"
    preconditions.require(None if row is None else row["etag"], target, if_match, if_none_match=if_none_match)


def refuse_deleting(row: resource_rows.Row, ref: Ref) -> None:
    """Raises Error Conflict if the resource is being deleted."""
    if row["deleting"]:
        kind, name = ("endpoint", ref.endpoint) if ref.deployment is None else ("deployment", ref.deployment)
        raise Error(
            "Conflict",
            f"{kind} '{name}' is being deleted",
            target=name,
            hint="wait until the deletion has finished, then repeat the change",
        )


def retire(connection: Connection, generation: int) -> None:
    """Records that generations up to this one are used: a new resource of the same name starts
    above them."""
    highest = _retired(connection)
    if highest is None:
        connection.execute(insert(counters).values(name=_RETIRED, value=generation))
    elif generation > highest:
        connection.execute(update(counters).where(counters.c.name == _RETIRED).values(value=generation))


def _create(
    connection: Connection, ref: Ref, document: Mapping[str, Any], extra: Mapping[str, Any], now: float, by: Author
) -> Operation:
    generation = (_retired(connection) or 0) + 1
    place = {"key": ref.endpoint} if ref.deployment is None else {"endpoint": ref.endpoint, "key": ref.deployment}
    connection.execute(
        insert(resource_rows.table_of(ref)).values(
            **place,
            **extra,
            name=document["name"],
            document=dict(document),
            etag=_etag(generation),
            generation=generation,
            first_generation=generation,
            created_at=now,
            modified_at=now,
            deleting=False,
            state="Creating",
            observed_generation=0,
            ever_succeeded=False,
            phase="",
            message="",
            facts={},
        )
    )
    revision_rows.created(connection, ref, generation, document, by, now)
    return operation_rows.begin(connection, ref, "create", generation, now=now)


def unchanged(connection: Connection, ref: Ref, row: resource_rows.Row, now: float) -> Operation:
    """An operation on the current generation, which ends with its outcome. A failed change is tried
    again as a new generation."""
    generation: int = row["generation"]
    observed = row["observed_generation"] >= generation
    if observed and row["state"] == "Failed":
        generation += 1
        state: State = "Updating" if row["ever_succeeded"] else "Creating"
        _change(connection, ref, generation, state, {"modified_at": now})
        observed = False
    return operation_rows.begin(connection, ref, "update", generation, now=now, ended=observed)


def _same_resolved(row: resource_rows.Row, resolved: Mapping[str, Any]) -> bool:
    return all(resource_rows.same(value, row[name]) for name, value in resolved.items())


def _state_after(row: resource_rows.Row, document: Mapping[str, Any], resolved: Mapping[str, Any]) -> State:
    rest, former = dict(document), dict(row["document"])
    counts = rest.pop("instance_count", 1), former.pop("instance_count", 1)
    same = resource_rows.same(rest, former) and _same_resolved(row, resolved)
    return "Scaling" if counts[0] != counts[1] and same else "Updating"


def _change(connection: Connection, ref: Ref, generation: int, state: State, values: Mapping[str, Any]) -> None:
    status = {"state": state, "phase": "", "message": "", "error": None}
    statement = update(resource_rows.table_of(ref)).where(resource_rows.at(ref))
    connection.execute(statement.values(generation=generation, **status, **values))


def _etag(generation: int) -> str:
    """Unique among all documents that a name ever had, because generations are."""
    return f'"{generation:x}"'


def _retired(connection: Connection) -> int | None:
    value = connection.execute(select(counters.c.value).where(counters.c.name == _RETIRED)).scalar()
    return None if value is None else int(value)
