"""Whether there is room for the instances that a change adds, asked before the change is accepted.

Decides how many instances a change adds and what is said when they do not fit: a refusal with the arithmetic, or what
is going to happen instead. Between this look and the scheduler's own the room may be gone, or come: the scheduler has
the last word. Must not know HTTP or nodes' objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amphitrite.controlplane.core.capacity import node_capacity
from amphitrite.controlplane.core.capacity.node_capacity import NodeCapacity
from amphitrite.controlplane.core.desired import instance_types, resources
from amphitrite.controlplane.core.desired.resources import Deployment
from amphitrite.controlplane.core.rules.deployment_rules import Place
from amphitrite.controlplane.services.services import Services
from amphitrite.controlplane.store.state.store import Record
from amphitrite.schemas.errors import Error

Document = Mapping[str, Any]

_HINT = (
    "make room, give the compute a smaller instance type of that name (ml compute update, ML_INSTANCE_TYPES), or let "
    f"properties.{resources.CAPACITY_POLICY} say what is to happen: wait (until there is room), or drain-first (old "
    "instances make room, one by one)"
)


def admit(services: Services, place: Place, former: Record | None, document: Document, model: Document) -> str | None:
    """What a user is told first about a change whose instances do not fit now; None when they do, or nobody knows.

    Raises Error OutOfQuota under the policy ``refuse``, InvalidDeploymentSpec for resources that no pod can have.
    """
    if place.compute is None:
        return None
    wanted = _wanted(document, model, place)
    shape = instance_types.shape(wanted.workload.instance_type, place.compute)
    asked = services.runtime.demand(wanted.workload, shape)
    if asked is None:
        return None
    before = _wanted(former.document, model, place) if former is not None else None
    replacing, added = _added(former, document, wanted, before)
    nodes = _nodes(services, place) if added else None
    if nodes is None:
        return None
    fit = node_capacity.fits(nodes, asked, added)
    if fit.fits:
        return None
    if wanted.capacity_policy == "refuse":
        target = f"{document['endpoint_name']}/{document['name']}"
        raise Error("OutOfQuota", fit.sentence, target=target, hint=_HINT)
    if replacing and wanted.capacity_policy == "drain-first":
        return f"{fit.sentence}; old instances are drained one by one to make room (drain-first)"
    return f"{fit.sentence}; new instances wait until there is room ({wanted.capacity_policy})"


def _nodes(services: Services, place: Place) -> tuple[NodeCapacity, ...] | None:
    """None while the cluster does not answer: what is wanted can be said all the same."""
    try:
        return services.runtime.capacity(place.name)
    except Error as error:
        if error.code != "KubernetesUnaccessible":
            raise
        return None


def _added(
    former: Record | None, document: Document, wanted: Deployment, before: Deployment | None
) -> tuple[bool, int]:
    """Whether instances are replaced, and how many come besides those that are there."""
    if former is None or before is None or former.deleting:
        return False, wanted.instance_count
    moved = former.compute is not None and former.compute != wanted.workload.compute
    # The workload's name says nothing of another model or environment here: both were made with the new ones.
    other = any(former.document.get(field) != document.get(field) for field in ("model", "environment"))
    if moved or other or before.workload != wanted.workload:
        return True, wanted.instance_count
    return False, max(0, wanted.instance_count - before.instance_count)


def _wanted(document: Document, model: Document, place: Place) -> Deployment:
    """The document as desired state."""
    reference, container = resources.stored_model(model)
    return resources.deployment_from_document(
        document,
        endpoint=document["endpoint_name"],
        model=reference,
        container=container,
        compute=place.name,
        generation=0,
        observed_generation=0,
        deleting=False,
        ever_succeeded=False,
        changed_at=0.0,
    )
