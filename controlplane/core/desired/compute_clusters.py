"""Computes: attached Kubernetes clusters, and what an instance type means on each of them.

Decides the shape of a compute and of its instance types, and how documents become them. Must not
know the Kubernetes client or the store.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from amphitrite.controlplane.core.desired.resources import DEFAULT_INSTANCE_TYPE
from amphitrite.dataplane.table.routing_table import Secret
from amphitrite.schemas import documents, wire
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key

#: The compute that ``--runtime kubernetes`` adds: the cluster that the control plane runs in.
BUILT_IN = "kubernetes"


@dataclass(frozen=True, slots=True)
class PodShape:
    """What a pod of one instance type requests from a cluster.

    ``requests`` and ``limits``: sorted (resource, Kubernetes quantity) pairs. ``scheduling``:
    fields that are copied to the PodSpec: nodeSelector, tolerations, affinity,
    topologySpreadConstraints, priorityClassName, runtimeClassName, imagePullSecrets. ``image``: the
    Triton image, None for the compute's default. ``triton_tag``: the tag to use instead where the
    GPUs are too old for the product's default image; None otherwise.
    """

    name: str
    requests: tuple[tuple[str, str], ...] = ()
    limits: tuple[tuple[str, str], ...] = ()
    scheduling: Mapping[str, Any] = field(default_factory=dict)
    image: str | None = None
    description: str = ""
    triton_tag: str | None = None


@dataclass(frozen=True, slots=True)
class Compute:
    """An attached cluster.

    ``kubeconfig``: the content of the file, None for the cluster that the control plane runs in.
    ``instance_types``: they override Azure's types of the same name
    (``core.desired.instance_types``).
    """

    name: str
    namespace: str
    kubeconfig: Secret | None
    instance_types: tuple[PodShape, ...] = ()
    default_instance_type: str = DEFAULT_INSTANCE_TYPE
    description: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)


#: Field of an instance type's document -> field of a PodSpec.
_SCHEDULING = {
    "node_selector": "nodeSelector",
    "tolerations": "tolerations",
    "affinity": "affinity",
    "topology_spread_constraints": "topologySpreadConstraints",
    "priority_class_name": "priorityClassName",
    "runtime_class_name": "runtimeClassName",
    "image_pull_secrets": "imagePullSecrets",
}


def compute_from_document(document: Mapping[str, Any], former: Compute | None = None) -> Compute:
    """The compute of a valid document, whose ``kubeconfig`` is the content of the file.

    A document that sets neither ``kubeconfig`` nor ``in_cluster`` keeps the access of ``former``,
    the compute that it updates.
    """
    text = document.get("kubeconfig")
    kubeconfig = Secret(text) if text is not None else None
    if text is None and not document.get("in_cluster") and former is not None:
        kubeconfig = former.kubeconfig
    return Compute(
        name=former.name if former is not None else document["name"],
        namespace=document["namespace"],
        kubeconfig=kubeconfig,
        instance_types=tuple(pod_shape(one) for one in document.get("instance_types") or ()),
        default_instance_type=document.get("default_instance_type") or DEFAULT_INSTANCE_TYPE,
        description=document.get("description") or "",
        tags=dict(document.get("tags") or {}),
    )


def compute_document(compute: Compute) -> dict[str, Any]:
    """The document of a compute, without its kubeconfig."""
    return {
        "name": compute.name,
        "type": "kubernetes",
        "namespace": compute.namespace,
        "in_cluster": compute.kubeconfig is None,
        "default_instance_type": compute.default_instance_type,
        "instance_types": [instance_type_document(one) for one in compute.instance_types],
        "description": compute.description or None,
        "tags": dict(compute.tags),
    }


#: Of the built-in compute, which nobody can change.
BUILT_IN_ETAG = '"built-in"'


def etag(compute: Compute) -> str:
    """The etag, with quotes. It depends on the content alone, the kubeconfig included."""
    access = "" if compute.kubeconfig is None else compute.kubeconfig.reveal()
    text = json.dumps([compute_document(compute), access], sort_keys=True)
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def instance_types_from_document(document: Mapping[str, Any], target: str = "instance types") -> tuple[PodShape, ...]:
    """The instance types of an InstanceTypes document, or of Azure's InstanceType or
    InstanceTypeList.

    ``target``: the name of the document in errors. Raises Error("InvalidDocument") with all
    violations.
    """
    kind = documents.instance_types_kind(document)
    violations = documents.validate(kind, document)
    if violations:
        first = violations[0]
        raise Error("InvalidDocument", f"{target}: {first}", target=target, hint=first.hint, violations=violations)
    return tuple(pod_shape(one) for one in wire.listed_types(kind, documents.normalize(kind, document)))


def pod_shape(of: Mapping[str, Any]) -> PodShape:
    """One entry of ``instance_types``."""
    resources = of.get("resources") or {}
    requests, limits = complete_quantities(_present(resources.get("requests")), _present(resources.get("limits")))
    scheduling = {theirs: of[ours] for ours, theirs in _SCHEDULING.items() if of.get(ours)}
    if "imagePullSecrets" in scheduling:
        scheduling["imagePullSecrets"] = [{"name": name} for name in scheduling["imagePullSecrets"]]
    return PodShape(of["name"], requests, limits, scheduling, of.get("image"), of.get("description") or "")


def instance_type_document(shape: PodShape) -> dict[str, Any]:
    """The inverse of :func:`pod_shape`."""
    scheduling = {ours: shape.scheduling[theirs] for ours, theirs in _SCHEDULING.items() if theirs in shape.scheduling}
    if "image_pull_secrets" in scheduling:
        scheduling["image_pull_secrets"] = [secret["name"] for secret in scheduling["image_pull_secrets"]]
    optional = {"description": shape.description, "image": shape.image}
    return {
        "name": shape.name,
        "resources": {"requests": dict(shape.requests), "limits": dict(shape.limits)},
        **scheduling,
        **{name: value for name, value in optional.items() if value},
    }


def complete_quantities(
    requests: Mapping[str, str], limits: Mapping[str, str]
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    """Sorted requests and limits, with missing values filled in from the other side.

    Memory and devices (names with ``/``) get equal requests and limits: a pod that uses more memory
    than it requested is killed when its node runs out, and devices cannot be shared. The CPU has a
    limit only if the document sets one.
    """
    both = [name for name in {**requests, **limits} if name != "cpu"]
    filled_requests = {**{name: limits[name] for name in both if name in limits}, **requests}
    filled_limits = {**{name: requests[name] for name in both if name in requests}, **limits}
    return tuple(sorted(filled_requests.items())), tuple(sorted(filled_limits.items()))


def find_compute(name: str, computes: Iterable[Compute]) -> Compute | None:
    """The compute of this name, compared without case; None if there is none."""
    return next((one for one in computes if key(one.name) == key(name)), None)


def _present(quantities: Mapping[str, str | None] | None) -> dict[str, str]:
    """Quantities without nulls: Azure's documents write ``nvidia.com/gpu: null`` for no GPU."""
    return {name: str(value) for name, value in (quantities or {}).items() if value is not None}
