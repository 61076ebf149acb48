"""Capacity check of a change before it is accepted.

Decides how many instances a change adds, and what the user is told if they do not fit: a refusal
with the figures, or what happens instead. The capacity may change before the Kubernetes scheduler
places the pods. The scheduler decides. Must not know HTTP or Kubernetes objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amphitrite.controlplane.core.capacity import node_capacity
from amphitrite.controlplane.core.capacity.node_capacity import NodeCapacity
from amphitrite.controlplane.core.desired import instance_types, resources
from amphitrite.controlplane.core.desired.resources import Deployment
from amphitrite.controlplane.core.rules.deployment_rules import Place
from amphitrite.controlplane.core.scaling.scales import scaled
from amphitrite.controlplane.services.services import Services
from amphitrite.controlplane.store.state.store import Record
from amphitrite.schemas.errors import Error

Document = Mapping[str, Any]

_HINT = (
    "free capacity, reduce the resources of the instance type (ml compute update, ML_INSTANCE_TYPES), or set "
    f"properties.{resources.CAPACITY_POLICY} to wait (new instances wait for capacity) or drain-first (old instances "
    "stop one by one first)"
)


def admit(services: Services, place: Place, former: Record | None, document: Document, model: Document) -> str | None:
    """The operation message for a change whose instances do not fit now. None if they fit, or if
    the capacity is unknown.

    Raises Error: OutOfQuota (policy ``refuse``), InvalidDeploymentSpec (resources that no pod can
    have).
    """
    if place.compute is None:
        return None
    wanted = _wanted(document, model, place)
    if wanted.scale_settings is not None and wanted.scale_settings.mode == "apply":
        wanted = scaled(wanted, None if former is None else former.scale)
    shape = instance_types.shape(wanted.workload.instance_type, place.compute)
    demand = services.runtime.demand(wanted.workload, shape)
    if demand is None:
        return None
    before = scaled(_wanted(former.document, model, place), former.scale) if former is not None else None
    replacing, added = _added(former, document, wanted, before)
    nodes = _nodes(services, place) if added else None
    if nodes is None:
        return None
    fit = node_capacity.fits(nodes, demand, added)
    if fit.fits:
        return None
    if wanted.capacity_policy == "refuse":
        target = f"{document['endpoint_name']}/{document['name']}"
        raise Error("OutOfQuota", fit.sentence, target=target, hint=_HINT)
    if replacing and wanted.capacity_policy == "drain-first":
        return f"{fit.sentence}; old instances are drained one by one to free capacity (drain-first)"
    return f"{fit.sentence}; new instances wait until there is capacity ({wanted.capacity_policy})"


def _nodes(services: Services, place: Place) -> tuple[NodeCapacity, ...] | None:
    """The nodes of the compute. None if they are unknown, or while the cluster does not answer."""
    try:
        return services.runtime.capacity(place.name)
    except Error as error:
        if error.code != "KubernetesUnaccessible":
            raise
        return None


def _added(
    former: Record | None, document: Document, wanted: Deployment, before: Deployment | None
) -> tuple[bool, int]:
    """Whether the change replaces instances, and how many instances it starts."""
    if former is None or before is None or former.deleting:
        return False, wanted.instance_count
    moved = former.compute is not None and former.compute != wanted.workload.compute
    # Both workloads were built with the new model and environment. Compare these references too.
    changed = any(former.document.get(field) != document.get(field) for field in ("model", "environment"))
    if moved or changed or before.workload != wanted.workload:
        return True, wanted.instance_count
    return False, max(0, wanted.instance_count - before.instance_count)


def _wanted(document: Document, model: Document, place: Place) -> Deployment:
    """The document as a desired deployment."""
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
