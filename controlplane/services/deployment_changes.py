"""What becomes of a deployment's document before it is stored, and of a deployment that is to go.

Decides which references are pinned, what is refused, whether the change waits for room, and where the traffic of a
deleted deployment goes. Must not know HTTP.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from amphitrite.controlplane.core.rules import deployment_rules, traffic_removal
from amphitrite.controlplane.core.rules.deployment_rules import Place
from amphitrite.controlplane.services import admission, container_resolution, references, wire_documents
from amphitrite.controlplane.services.services import Services
from amphitrite.controlplane.store.state.store import Operation, Record, Ref
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key


@dataclass(frozen=True, slots=True)
class DeploymentChange:
    """A judged document. ``model``: what the store keeps of its references; ``former``: the deployment of that name
    that is there already; ``waiting``: why its instances cannot start yet, None when they can."""

    document: dict[str, Any]
    model: dict[str, Any]
    place: Place
    former: Record | None
    waiting: str | None


def judge(services: Services, endpoint: Record, document: dict[str, Any]) -> DeploymentChange:
    """Everything that must hold before ``document`` is stored. Call inside ``store.exclusive()``, so that it still
    holds when ``put`` stores it. Raises Error InvalidDocument, OutOfQuota, InvalidDeploymentSpec, ResourceNotFound."""
    place = references.place(services, endpoint.document)
    former = _former(services, endpoint.name, str(document["name"]))
    document, model = _checked(services, endpoint.name, document, former, place)
    waiting = admission.admit(services, place, former, document, model)
    return DeploymentChange(document, model, place, former, waiting)


def put(
    services: Services, endpoint: str, change: DeploymentChange, *, if_match: str | None, if_none_match: bool
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
    )


def delete(services: Services, endpoint: str, name: str, *, if_match: str | None, force: bool) -> Operation | None:
    """Mark a deployment as deleting; None when there is nothing of that name. Call inside ``store.exclusive()``.

    ``force``: also when it has traffic, which then goes to the others in proportion to theirs. Raises Error UserError
    (it has traffic), PreconditionFailed, Conflict.
    """
    try:
        parent, record = services.store.get_endpoint(endpoint), services.store.get_deployment(endpoint, name)
    except Error as error:
        if error.code == "ResourceNotFound":
            return None
        raise
    # An endpoint that goes takes its deployments along, traffic or not.
    violations = (
        [] if parent.deleting or record.deleting else traffic_removal.check_removal(parent.document, record.name)
    )
    if violations and force:
        wanted = {tag.strip() for tag in (if_match or "*").split(",")}
        if not wanted & {"*", record.etag}:
            message = f"it has changed since it was read: If-Match is {if_match}, its etag is {record.etag}"
            raise Error("PreconditionFailed", message, target=f"{parent.name}/{name}")
        # Both are in force with the next table: whoever was sent to it is sent elsewhere, and what it has, it ends.
        left = traffic_removal.traffic_without(parent.document, record.name)
        services.store.put_endpoint(left, if_match=None, if_none_match=False, now=services.clock())
    elif violations:
        raise Error("UserError", violations[0].message, target=f"{parent.name}/{record.name}", hint=violations[0].hint)
    return services.store.delete(Ref(key(endpoint), key(name)), if_match=if_match, now=services.clock())


def _checked(
    services: Services, endpoint: str, document: dict[str, Any], former: Record | None, place: Place
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The document with its model and environment pinned to versions and its instance type named, and what the store
    takes as its model. Raises Error("InvalidDocument")."""
    target = f"{endpoint}/{document['name']}"
    name, bounds = key(document["name"]), services.settings.limits.bounds
    siblings = [record for record in services.store.list_deployments(endpoint) if record.ref.deployment != name]
    found = references.find(services.models, str(document.get("model")))
    if found and former and former.document.get("model") == references.arm_id(services.workspace, found):
        # A model may be archived while it serves: it is new users that it is hidden from.
        found = replace(found, archived=False)
    environment = container_resolution.resolve(services, document, found, former, place)
    if found is not None and environment.model_names is not None:
        found = replace(found, model_names=environment.model_names)
    violations = deployment_rules.check_deployment(
        document, siblings=len(siblings), model=found, bounds=bounds, place=place
    )
    wire_documents.refuse([*violations, *environment.violations], target)
    assert found is not None  # no model is a violation
    pinned = {**document, "model": references.arm_id(services.workspace, found)}
    if environment.id is not None:
        pinned["environment"] = environment.id
    if place.compute is not None:
        # What the compute's default is may change; what runs is not to change with it.
        pinned.setdefault("instance_type", place.compute.default_instance_type)
    model = {**services.models.reference(found.name, found.version), "model_names": list(found.model_names)}
    return pinned, {**model, **({"container": asdict(environment.container)} if environment.container else {})}


def _former(services: Services, endpoint: str, name: str) -> Record | None:
    """The deployment of this name that is there already."""
    return next((r for r in services.store.list_deployments(endpoint) if r.ref.deployment == key(name)), None)
