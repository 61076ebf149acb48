"""The disk of an instance: how much each of its volumes may hold, and what its containers request.

Decides the bounds, from the instance type's ``ephemeral-storage``, the settings and the model's
size. A pod that exceeds one is evicted by its node, before it fills the node's disk. Must not know
pods or nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

from amphitrite.controlplane.core.capacity.node_capacity import quantity
from amphitrite.controlplane.core.desired.compute_clusters import PodShape
from amphitrite.controlplane.runtimes.kubernetes.workloads.model_facts import ModelFacts
from amphitrite.controlplane.runtimes.kubernetes.workloads.pod_resources import MIB, format_bytes
from amphitrite.controlplane.runtimes.kubernetes.workloads.pod_settings import KubernetesSettings

RESOURCE = "ephemeral-storage"
#: What a pod requests for logs and temporary files. Most write next to nothing.
_REQUEST = 128 * MIB
#: The fetcher keeps parts of files beside finished ones, and lists of them.
_FETCH_FACTOR, _FETCH_SLACK = 2, 256 * MIB


@dataclass(frozen=True, slots=True)
class Storage:
    """Quantities. ``tmp``: of /tmp. ``model``: of the volume for the model, None where it is not on
    the pod's own disk. ``requests`` and ``limits``: of each container, None where nodes do not
    count."""

    tmp: str
    model: str | None
    requests: str | None
    limits: str | None


def storage(demand: PodShape, settings: KubernetesSettings, facts: ModelFacts | None) -> Storage:
    """``demand``: from ``pod_resources.demand``. Its limit of ``ephemeral-storage`` is what the
    server may write, in place of the settings' bound; the model's files are added."""
    requested, limited = dict(demand.requests).get(RESOURCE), dict(demand.limits).get(RESOURCE)
    scratch = int(quantity(limited)) if limited else settings.scratch_bytes
    model = 0
    if settings.cache.kind == "emptyDir":
        model = _FETCH_SLACK + (_FETCH_FACTOR * facts.size if facts is not None else scratch)
    own = int(quantity(requested)) if requested else min(_REQUEST, scratch)
    request = own + (facts.size if facts is not None and model else 0)
    counted = settings.storage_requests or requested is not None or limited is not None
    return Storage(
        tmp=format_bytes(scratch),
        model=format_bytes(model) if model else None,
        requests=format_bytes(request) if counted else None,
        limits=format_bytes(max(scratch + model, request)) if counted else None,
    )
