"""Rows of endpoints and deployments, and the values that they hold.

Decides how a resource is addressed in the tables, and how a row becomes a record or desired state.
Must not know transactions.
"""

from __future__ import annotations

import json

from sqlalchemy import ColumnElement, Connection, RowMapping, Table, and_, select

from amphitrite.controlplane.core.desired import resources
from amphitrite.controlplane.core.observed.status import Ref, Status
from amphitrite.controlplane.store.sql.tables import deployments, endpoints
from amphitrite.controlplane.store.state.store import Record
from amphitrite.dataplane.table.routing_table import Secret
from amphitrite.schemas.errors import Error

Row = RowMapping


def table_of(ref: Ref) -> Table:
    return endpoints if ref.deployment is None else deployments


def at(ref: Ref) -> ColumnElement[bool]:
    """The SQL condition that selects ``ref`` in its table."""
    if ref.deployment is None:
        return endpoints.c.key == ref.endpoint
    return and_(deployments.c.endpoint == ref.endpoint, deployments.c.key == ref.deployment)


def find(connection: Connection, ref: Ref) -> Row | None:
    return connection.execute(select(table_of(ref)).where(at(ref))).mappings().first()


def get(connection: Connection, ref: Ref) -> Row:
    """Raises Error ResourceNotFound."""
    row = find(connection, ref)
    if row is not None:
        return row
    if ref.deployment is None:
        raise Error(
            "ResourceNotFound",
            f"endpoint '{ref.endpoint}' does not exist",
            target=ref.endpoint,
            hint="run `ml online-endpoint list` to see all endpoints",
        )
    raise Error(
        "ResourceNotFound",
        f"endpoint '{ref.endpoint}' has no deployment '{ref.deployment}'",
        target=f"{ref.endpoint}/{ref.deployment}",
        hint=f"run `ml online-deployment list -e {ref.endpoint}` to see its deployments",
    )


def ref_of(row: Row) -> Ref:
    return Ref(row["endpoint"], row["key"]) if "endpoint" in row else Ref(row["key"])


def same(one: object, other: object) -> bool:
    """Whether two JSON values are equal. Unlike ``==``, it distinguishes true from 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def record(row: Row) -> Record:
    return Record(
        ref=ref_of(row),
        name=row["name"],
        document=row["document"],
        etag=row["etag"],
        generation=row["generation"],
        created_at=row["created_at"],
        modified_at=row["modified_at"],
        deleting=row["deleting"],
        compute=row.get("compute"),
        status=Status(
            state=row["state"],
            observed_generation=row["observed_generation"],
            phase=row["phase"],
            message=row["message"],
            error=None if row["error"] is None else Error.from_body(row["error"]),
            facts=row["facts"],
        ),
    )


def endpoint(row: Row) -> resources.Endpoint:
    return resources.endpoint_from_document(
        row["document"],
        keys=(Secret(row["primary_key"]), Secret(row["secondary_key"])),
        generation=row["generation"],
        observed_generation=row["observed_generation"],
        deleting=row["deleting"],
    )


def deployment(row: Row) -> resources.Deployment:
    model, container = resources.stored_model(row["model"])
    return resources.deployment_from_document(
        row["document"],
        endpoint=row["endpoint"],
        model=model,
        container=container,
        sequences=bool(row["model"].get("sequences")),
        number_ids=bool(row["model"].get("number_ids")),
        compute=row["compute"],
        generation=row["generation"],
        observed_generation=row["observed_generation"],
        deleting=row["deleting"],
        ever_succeeded=row["ever_succeeded"],
        changed_at=row["modified_at"],
        pause=_pause(row),
    )


def _pause(row: Row) -> resources.Pause | None:
    return None if row["paused_at"] is None else resources.Pause(row["paused_at"], row["paused_by"] or "")
