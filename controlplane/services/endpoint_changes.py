"""Checks of an endpoint's document before it is stored.

Decides what is refused and which compute the endpoint is pinned to. Must not know HTTP.
"""

from __future__ import annotations

from typing import Any

from amphitrite.controlplane.core.history import traffic_history
from amphitrite.controlplane.core.history.revisions import Author
from amphitrite.controlplane.core.rules import deployment_rules
from amphitrite.controlplane.services import references, rollout_changes, wire_documents
from amphitrite.controlplane.services.services import Services
from amphitrite.controlplane.store.state.store import Operation, Record
from amphitrite.schemas.errors import Error


def prepare(services: Services, name: str, document: dict[str, Any]) -> dict[str, Any]:
    """The document as it is stored: with the ARM id of its compute, and without shares of 0.

    Raises Error("InvalidDocument").
    """
    computes, before = [one.name for one in references.clusters(services)], former(services, name)
    violations = deployment_rules.check_endpoint(
        document,
        deployments=_deployments(services, name),
        computes=computes,
        former=None if before is None else before.document,
    )
    wire_documents.refuse(violations, name)
    # A share of 0 says nothing that its absence does not, and would outlive its deployment.
    document = document | {
        field: {one: share for one, share in document[field].items() if int(share)}
        for field in ("traffic", "mirror_traffic")
        if document.get(field)
    }
    if not document.get("compute"):
        return document
    return {**document, "compute": references.compute_arm_id(services, document["compute"])}


def set_traffic(
    services: Services, name: str, number: int | None, by: Author, *, if_match: str | None
) -> tuple[Record, Operation]:
    """Bring back the traffic of revision ``number``; None: that before the last change of traffic.

    Call it inside ``store.exclusive()``. Raises Error: ResourceNotFound, UserError (nothing to
    undo), InvalidDocument (a deployment of that traffic is gone), PreconditionFailed, Conflict
    (also while a rollout goes on).
    """
    record = services.store.get_endpoint(name)
    rollout_changes.require_none(services, name)
    revisions = services.store.revisions(record.ref)
    if number is None:
        wanted = traffic_history.before_last_change(record.name, revisions)
    else:
        wanted = traffic_history.at_revision(record.name, revisions, number)
    document = prepare(services, name, traffic_history.with_traffic(record.document, wanted))
    return services.store.put_endpoint(document, if_match=if_match, if_none_match=False, now=services.clock(), by=by)


def former(services: Services, name: str) -> Record | None:
    """The stored endpoint of this name; None if there is none, or if it is being deleted."""
    try:
        record = services.store.get_endpoint(name)
    except Error as error:
        if error.code == "ResourceNotFound":
            return None
        raise
    return None if record.deleting else record


def _deployments(services: Services, endpoint: str) -> list[str]:
    """Names of the endpoint's deployments that are not being deleted. Empty for a new endpoint."""
    try:
        return [record.name for record in services.store.list_deployments(endpoint) if not record.deleting]
    except Error as error:
        if error.code == "ResourceNotFound":
            return []
        raise
