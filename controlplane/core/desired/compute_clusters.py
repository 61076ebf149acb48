"""Computes: the clusters that instances run on besides this machine, and what an instance type means there.

Decides the shape of an attached compute and of its instance types, and how their documents become them. Must not know
Kubernetes' client or the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from amphitrite.controlplane.core.desired.resources import DEFAULT_INSTANCE_TYPE
from amphitrite.dataplane.table.routing_table import Secret
from amphitrite.schemas import documents, wire
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key

#: The compute that ``--runtime kubernetes`` brings along: the cluster that the control plane itself was given.
BUILT_IN = "kubernetes"


@dataclass(frozen=True, slots=True)
class PodShape:
    """What a pod of one instance type asks of a cluster.

    ``requests`` and ``limits``: sorted (resource, quantity) in Kubernetes' notation. ``scheduling``: fields of a
    PodSpec that are passed through: nodeSelector, tolerations, affinity, topologySpreadConstraints, priorityClassName,
    runtimeClassName, imagePullSecrets. ``image``: of Triton, None for the compute's own. ``triton_tag``: the release
    that these GPUs need where the compute uses the product's default image; None where that one does.
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
    """An attached cluster. ``kubeconfig``: the text of the file, None for the cluster that we run in ourselves.
    ``instance_types`` come before and over Azure's own (``core.instance_types``)."""

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
    """A valid compute document, whose ``kubeconfig`` is the text of the file. One that names neither ``kubeconfig`` nor
    ``in_cluster`` keeps those of ``former``."""
    given = document.get("kubeconfig")
    kubeconfig = Secret(given) if given is not None else None
    if given is None and not document.get("in_cluster") and former is not None:
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


def document_of(compute: Compute) -> dict[str, Any]:
    """The document of a compute, without its secret."""
    return {
        "name": compute.name,
        "type": "kubernetes",
        "namespace": compute.namespace,
        "in_cluster": compute.kubeconfig is None,
        "default_instance_type": compute.default_instance_type,
        "instance_types": [type_document(one) for one in compute.instance_types],
        "description": compute.description or None,
        "tags": dict(compute.tags),
    }


def instance_types_from_document(document: Mapping[str, Any], target: str = "instance types") -> tuple[PodShape, ...]:
    """The types of an InstanceTypes document, of Azure's InstanceType or InstanceTypeList. ``target``: what the
    document is called in errors. Raises Error("InvalidDocument") with everything that is wrong."""
    kind = documents.instance_types_kind(document)
    found = documents.validate(kind, document)
    if found:
        first = found[0]
        raise Error("InvalidDocument", f"{target}: {first}", target=target, hint=first.hint, violations=found)
    return tuple(pod_shape(one) for one in wire.listed_types(kind, documents.normalize(kind, document)))


def pod_shape(of: Mapping[str, Any]) -> PodShape:
    """One entry of ``instance_types``."""
    resources = of.get("resources") or {}
    requests, limits = evened(_present(resources.get("requests")), _present(resources.get("limits")))
    scheduling = {theirs: of[ours] for ours, theirs in _SCHEDULING.items() if of.get(ours)}
    if "imagePullSecrets" in scheduling:
        scheduling["imagePullSecrets"] = [{"name": name} for name in scheduling["imagePullSecrets"]]
    return PodShape(of["name"], requests, limits, scheduling, of.get("image"), of.get("description") or "")


def type_document(shape: PodShape) -> dict[str, Any]:
    """The inverse of :func:`pod_shape`."""
    scheduling = {ours: shape.scheduling[theirs] for ours, theirs in _SCHEDULING.items() if theirs in shape.scheduling}
    if "image_pull_secrets" in scheduling:
        scheduling["image_pull_secrets"] = [secret["name"] for secret in scheduling["image_pull_secrets"]]
    said = {"description": shape.description, "image": shape.image}
    return {
        "name": shape.name,
        "resources": {"requests": dict(shape.requests), "limits": dict(shape.limits)},
        **scheduling,
        **{name: value for name, value in said.items() if value},
    }


def evened(
    requests: Mapping[str, str], limits: Mapping[str, str]
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    """Requests and limits, sorted, where of memory and of devices (names with ``/``) the one that is left out equals
    the other: a pod that may use more memory than was set aside for it is killed when its node runs short, and devices
    cannot be shared. Cores have a limit only where one is asked for."""
    both = [name for name in {**requests, **limits} if name != "cpu"]
    asked = {**{name: limits[name] for name in both if name in limits}, **requests}
    most = {**{name: requests[name] for name in both if name in requests}, **limits}
    return tuple(sorted(asked.items())), tuple(sorted(most.items()))


def named(name: str, computes: Iterable[Compute]) -> Compute | None:
    """The compute of this name, compared without case."""
    return next((one for one in computes if key(one.name) == key(name)), None)


def _present(quantities: Mapping[str, str | None] | None) -> dict[str, str]:
    """Azure's documents write ``nvidia.com/gpu: null`` for none."""
    return {name: str(value) for name, value in (quantities or {}).items() if value is not None}
