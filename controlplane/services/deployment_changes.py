"""Checks of a deployment's document before it is stored, and the deletion of a deployment.

Decides which references are pinned, what is refused, whether the change waits for capacity, and
where the traffic of a deleted deployment goes. Must not know HTTP.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from amphitrite.controlplane.core.desired import scale_settings
from amphitrite.controlplane.core.history import deployment_history
from amphitrite.controlplane.core.history.revisions import NOBODY, Author
from amphitrite.controlplane.core.rules import deployment_rules, preconditions, traffic_removal
from amphitrite.controlplane.core.rules.deployment_rules import Place
from amphitrite.controlplane.core.scaling.scales import AUTOSCALE_SETTING
from amphitrite.controlplane.services import (
    admission,
    autoscale_changes,
    container_resolution,
    references,
    wire_documents,
)
from amphitrite.controlplane.services.services import Services
from amphitrite.controlplane.store.state.store import Operation, Record, Ref
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key


@dataclass(frozen=True, slots=True)
class DeploymentChange:
    """A document that passed the checks.

    ``model``: the resolved model and container, as the store keeps them. ``former``: the stored
    deployment of this name, if any. ``waiting``: why its instances cannot start yet; None if they
    can.
    """

    document: dict[str, Any]
    model: dict[str, Any]
    place: Place
    former: Record | None
    waiting: str | None


def prepare(services: Services, endpoint: Record, document: dict[str, Any]) -> DeploymentChange:
    """The change that ``document`` makes, after all checks.

    Call it and ``put`` in one ``store.exclusive()``, so that nothing changes in between. Raises
    Error: InvalidDocument, OutOfQuota, InvalidDeploymentSpec, ResourceNotFound.
    """
    place = references.place(services, endpoint.document)
    former = _former(services, endpoint.name, str(document["name"]))
    document = _with_own_count(document, former)
    document, model = _pinned(services, endpoint.name, document, former, place)
    waiting = admission.admit(services, place, former, document, model)
    return DeploymentChange(document, model, place, former, waiting)


def put(
    services: Services,
    endpoint: str,
    change: DeploymentChange,
    *,
    if_match: str | None,
    if_none_match: bool,
    by: Author = NOBODY,
) -> tuple[Record, Operation]:
    """Store the change. Raises what ``Store.put_deployment`` raises."""
    return services.store.put_deployment(
        endpoint,
        change.document,
        change.model,
        compute=change.place.name,
        waiting=change.waiting,
        if_match=if_match,
        if_none_match=if_none_match,
        now=services.clock(),
        by=by,
    )


def roll_back(
    services: Services, endpoint: str, name: str, number: int | None, by: Author, *, if_match: str | None
) -> tuple[Record, Operation]:
    """Bring back the document of revision ``number``, but for the number of instances; None: the
    newest one that differs.

    Call it inside ``store.exclusive()``. Raises Error: ResourceNotFound, UserError (nothing to go
    back to), and what ``prepare`` and ``put`` raise, for example for a model that was deleted.
    """
    parent, record = services.store.get_endpoint(endpoint), services.store.get_deployment(endpoint, name)
    target = f"{parent.name}/{record.name}"
    document = deployment_history.document_of(target, services.store.revisions(record.ref), number)
    if record.scale is not None and record.scale.scaler == AUTOSCALE_SETTING:
        document = {**document, "instance_count": record.scale.count}
    change = prepare(services, parent, document)
    return put(services, endpoint, change, if_match=if_match, if_none_match=False, by=by)


def delete(
    services: Services, endpoint: str, name: str, *, if_match: str | None, force: bool, by: Author = NOBODY
) -> Operation | None:
    """Mark a deployment as deleting. None if there is no deployment of that name. Call inside
    ``store.exclusive()``.

    ``force``: delete it even if it has traffic. The others get its traffic, in proportion to their
    own. Raises Error: UserError (it has traffic), PreconditionFailed, Conflict.
    """
    try:
        parent, record = services.store.get_endpoint(endpoint), services.store.get_deployment(endpoint, name)
    except Error as error:
        if error.code == "ResourceNotFound":
            return None
        raise
    # Deleting an endpoint deletes its deployments, with or without traffic.
    violations = (
        [] if parent.deleting or record.deleting else traffic_removal.check_removal(parent.document, record.name)
    )
    if violations and force:
        preconditions.require(record.etag, f"{parent.name}/{name}", if_match)
        # Both changes take effect with the next table. Requests in flight are finished.
        left = traffic_removal.traffic_without(parent.document, record.name)
        reason = by.reason or f"deployment {record.name} was deleted"
        removal = replace(by, reason=reason, cause="removal")
        services.store.put_endpoint(left, if_match=None, if_none_match=False, now=services.clock(), by=removal)
    elif violations:
        raise Error("UserError", violations[0].message, target=f"{parent.name}/{record.name}", hint=violations[0].hint)
    return services.store.delete(Ref(key(endpoint), key(name)), if_match=if_match, now=services.clock())


def _pinned(
    services: Services, endpoint: str, document: dict[str, Any], former: Record | None, place: Place
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(the document with a pinned model, environment and instance type, the model as the store
    keeps it).

    Raises Error("InvalidDocument").
    """
    target = f"{endpoint}/{document['name']}"
    name, bounds = key(document["name"]), services.settings.limits.bounds
    siblings = [record for record in services.store.list_deployments(endpoint) if record.ref.deployment != name]
    facts = references.find(services.models, str(document.get("model")))
    if facts and former and former.document.get("model") == references.arm_id(services.workspace, facts):
        # A deployment keeps a model that is archived later. Only new references are refused.
        facts = replace(facts, archived=False)
    environment = container_resolution.resolve(services, document, facts, former, place)
    if facts is not None and environment.model_names is not None:
        facts = replace(facts, model_names=environment.model_names)
    violations = deployment_rules.check_deployment(
        document, siblings=len(siblings), model=facts, bounds=bounds, place=place
    )
    violations = [*violations, *autoscale_changes.check_scale_settings(services, endpoint, document)]
    wire_documents.refuse([*violations, *environment.violations], target)
    assert facts is not None  # A missing model is a violation.
    pinned = {**document, "model": references.arm_id(services.workspace, facts)}
    if environment.id is not None:
        pinned["environment"] = environment.id
    if place.compute is not None:
        # The compute's default may change later. This deployment keeps today's.
        pinned.setdefault("instance_type", place.compute.default_instance_type)
    model = {**services.models.reference(facts.name, facts.version), "model_names": list(facts.model_names)}
    return pinned, {**model, **({"container": asdict(environment.container)} if environment.container else {})}


def _with_own_count(document: dict[str, Any], former: Record | None) -> dict[str, Any]:
    """Where a scaler sets the number, what clients send back is that number. The document keeps the
    one that it began with."""
    settings = scale_settings.of_document(document)
    before = None if former is None else scale_settings.of_document(former.document)
    if former is None or settings is None or before is None or "recommend" in (settings.mode, before.mode):
        return document
    kept = {name: value for name, value in document.items() if name != "instance_count"}
    own = former.document.get("instance_count")
    return kept if own is None else {**kept, "instance_count": own}


def _former(services: Services, endpoint: str, name: str) -> Record | None:
    """The stored deployment of this name, if any."""
    return next((r for r in services.store.list_deployments(endpoint) if r.ref.deployment == key(name)), None)
