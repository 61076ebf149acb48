"""Attached computes and their kubeconfigs as rows.

Decides how a compute is stored, and that a compute in use cannot be deleted. Works inside a
transaction of its caller. Must not know Kubernetes.
"""

from __future__ import annotations

from sqlalchemy import Connection, RowMapping, insert, select, update
from sqlalchemy import delete as delete_from

from amphitrite.controlplane.core.desired.compute_clusters import Compute, compute_document, compute_from_document
from amphitrite.controlplane.store.sql.tables import computes, deployments, endpoints
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key, parse_compute


def put(connection: Connection, compute: Compute, now: float) -> None:
    """Inserts or replaces the row. The first spelling of the name is kept, because URLs
    contain it."""
    existing_name = connection.execute(select(computes.c.name).where(computes.c.key == key(compute.name))).scalar()
    values = {
        "document": {**compute_document(compute), "name": existing_name or compute.name},
        "kubeconfig": None if compute.kubeconfig is None else compute.kubeconfig.reveal(),
        "modified_at": now,
    }
    if existing_name is None:
        identity = {"key": key(compute.name), "name": compute.name, "created_at": now}
        connection.execute(insert(computes).values(**identity, **values))
    else:
        connection.execute(update(computes).where(computes.c.key == key(compute.name)).values(**values))


def list_all(connection: Connection) -> list[Compute]:
    """All computes, sorted by name."""
    return [_compute(row) for row in connection.execute(select(computes).order_by(computes.c.key)).mappings()]


def delete(connection: Connection, name: str) -> bool:
    """Deletes the row. Returns whether it existed. Raises Error Conflict while the compute is in
    use."""
    users = _users(connection, name)
    if users:
        message = f"compute '{name}' is used by {', '.join(users)}"
        raise Error("Conflict", message, target=name, hint="delete these endpoints and deployments first")
    return connection.execute(delete_from(computes).where(computes.c.key == key(name))).rowcount > 0


def _users(connection: Connection, name: str) -> list[str]:
    """Endpoints whose document names the compute, and ``endpoint/deployment`` pairs on
    it, sorted."""
    endpoint_names = [
        str(row.name)
        for row in connection.execute(select(endpoints.c.name, endpoints.c.document).order_by(endpoints.c.key))
        if key(parse_compute(str(row.document.get("compute") or "")) or "") == key(name)
    ]
    query = select(deployments.c.endpoint, deployments.c.name, deployments.c.compute)
    ordered = connection.execute(query.order_by(deployments.c.endpoint, deployments.c.key))
    return endpoint_names + [f"{row.endpoint}/{row.name}" for row in ordered if key(row.compute) == key(name)]


def _compute(row: RowMapping) -> Compute:
    """The compute of a row: its document and the kubeconfig, which is stored in its own column."""
    kubeconfig = row["kubeconfig"]
    access = {} if kubeconfig is None else {"kubeconfig": kubeconfig}
    return compute_from_document({**row["document"], **access})
