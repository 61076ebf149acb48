"""Free capacity of a cluster: how many more pods of one shape fit on its nodes, and the
explanation.

Capacity is what a node can allocate minus the requests of its pods, on the nodes that accept the
pod (node selector, taints). The scheduler decides on affinity and topology spread, and it has the
final word: capacity may be gone before it looks. Must not know the Kubernetes client.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from amphitrite.controlplane.core.desired.compute_clusters import PodShape

#: Suffixes of Kubernetes quantities (``resource.Quantity`` in k8s.io/apimachinery) and their
#: factors.
_SUFFIXES: Mapping[str, Fraction] = {
    "n": Fraction(1, 1000**3),
    "u": Fraction(1, 1000**2),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    **{suffix: Fraction(1000) ** power for power, suffix in enumerate("kMGTPE", 1)},
    **{f"{suffix}i": Fraction(1024) ** power for power, suffix in enumerate("KMGTPE", 1)},
}
_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30}))(?:[eE](?P<power>[+-]?\d{1,2})|(?P<suffix>[A-Za-z]{0,2}))\Z"
)
#: The number of nodes or owners that a message lists.
_MAX_LISTED = 4


@dataclass(frozen=True, slots=True)
class Taint:
    """An entry of a node's ``spec.taints``."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


@dataclass(frozen=True, slots=True)
class PodDemand:
    """What one pod requests from its node.

    ``owner``: ``<endpoint>/<deployment>`` for a pod of this server, otherwise ``namespace/pod``.
    ``requests``: the sum over its containers, as Kubernetes quantities by resource.
    """

    owner: str
    requests: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class NodeCapacity:
    """A node: what it can allocate (``status.allocatable``) and the pods on it that have not ended.

    ``schedulable``: the node is ready and not cordoned.
    """

    name: str
    allocatable: Mapping[str, str]
    pods: tuple[PodDemand, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    schedulable: bool = True


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether the pods fit. ``capacity``: how many pods of the shape fit now. ``sentence``: why."""

    fits: bool
    capacity: int
    sentence: str


def quantity(text: str) -> Fraction:
    """Parses a Kubernetes quantity: ``100m`` is 1/10, ``2Gi`` is 2147483648, ``1e3`` is 1000.

    Raises ValueError with a message for the user.
    """
    match = _QUANTITY.match(text.strip())
    suffix = match["suffix"] or "" if match else ""
    if match is None or suffix not in _SUFFIXES:
        raise ValueError(f"{text!r} is not a quantity such as 500m, 2 or 4Gi")
    return Fraction(match["number"]) * Fraction(10) ** int(match["power"] or 0) * _SUFFIXES[suffix]


def pod_demand(shape: PodShape) -> dict[str, Fraction]:
    """What a pod of the shape requests, by resource, without zeros.

    A resource with a limit and no request counts with its limit, which is Kubernetes' default.
    """
    wanted = {name: quantity(text) for name, text in (*shape.limits, *shape.requests)}
    return {name: value for name, value in wanted.items() if value > 0}


def fits(nodes: Sequence[NodeCapacity], shape: PodShape, count: int) -> Fit:
    """Whether ``count`` more pods of ``shape`` fit on ``nodes`` as they are now.

    All pods are equal, so each node takes its free resources divided by what one pod requests.
    """
    demand = pod_demand(shape)
    refusals = {node.name: reason for node in nodes if (reason := _placement_obstacle(node, shape))}
    taking = [node for node in nodes if node.name not in refusals]
    free = {node.name: _free_resources(node, demand) for node in taking}
    capacity = sum(_pods_that_fit(rest, demand) for rest in free.values())
    if not taking:
        why = f"no node accepts them: {_join_limited([f'{name} {reason}' for name, reason in refusals.items()])}"
        why = why if nodes else "the cluster has no node"
        return Fit(count <= 0, 0, f"{_instances(count)} of {shape.name} cannot be placed: {why}")
    if not demand:
        return Fit(count <= capacity, capacity, _capacity_sentence(shape.name, count, capacity))
    bottleneck = _bottleneck(demand, free, count)
    return Fit(
        count <= capacity,
        capacity,
        _explanation(shape.name, count, capacity, bottleneck, demand, taking, free, refusals),
    )


def free(node: NodeCapacity, resource: str) -> Fraction:
    """The free amount of one resource on a node. Each pod takes one of the resource ``pods``."""
    has = quantity(node.allocatable.get(resource, "0"))
    if resource == "pods":
        return has - len(node.pods)
    return has - sum((quantity(pod.requests[resource]) for pod in node.pods if resource in pod.requests), Fraction())


def format_quantity(resource: str, value: Fraction) -> str:
    """A quantity for people: memory and storage in GiB, others as numbers with at most two
    decimals."""
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        return f"{_decimal(value / 1024**3)} GiB"
    return _decimal(value)


def _free_resources(node: NodeCapacity, demand: Mapping[str, Fraction]) -> dict[str, Fraction]:
    counted = [*demand, "pods"] if "pods" in node.allocatable else demand
    return {resource: free(node, resource) for resource in counted}


def _pods_that_fit(rest: Mapping[str, Fraction], demand: Mapping[str, Fraction], only: str | None = None) -> int:
    """How many pods fit into a node's free resources. ``only``: count this resource alone."""
    bounds = [rest[name] // demand.get(name, Fraction(1)) for name in rest if only in (None, name)]
    return max(0, min(bounds, default=0))


def _bottleneck(demand: Mapping[str, Fraction], free: Mapping[str, Mapping[str, Fraction]], count: int) -> str:
    """The resource with which the fewest pods fit. Of equals, an extended resource such
    as a GPU."""
    names = [*demand, "pods"] if all("pods" in rest for rest in free.values()) else list(demand)
    order = {name: ("/" not in name, name) for name in names}
    return min(names, key=lambda name: (sum(_pods_that_fit(rest, demand, name) for rest in free.values()), order[name]))


def _explanation(
    name: str,
    count: int,
    capacity: int,
    bottleneck: str,
    demand: Mapping[str, Fraction],
    nodes: Sequence[NodeCapacity],
    free: Mapping[str, Mapping[str, Fraction]],
    refusals: Mapping[str, str],
) -> str:
    one = demand.get(bottleneck, Fraction(1))
    total = sum((quantity(node.allocatable.get(bottleneck, "0")) for node in nodes), Fraction())
    left = sum((max(rest[bottleneck], Fraction()) for rest in free.values()), Fraction())
    unit = "" if bottleneck == "memory" else f" {bottleneck}"
    text = f"{_instances(count)} of {name} need{'s' if count == 1 else ''} {format_quantity(bottleneck, one * count)}"
    text += (
        f"{unit or ' of memory'}; {format_quantity(bottleneck, left)} of {format_quantity(bottleneck, total)} is free"
    )
    text += f": {_join_limited([_node_usage(node, bottleneck) for node in nodes])}"
    if count > capacity and left >= one * count:
        text += f"; there is capacity for {capacity}, because each instance must fit on one node"
    if refusals:
        text += f"; not counted: {_join_limited([f'{node} {reason}' for node, reason in refusals.items()])}"
    return text


def _node_usage(node: NodeCapacity, resource: str) -> str:
    """Such as ``node-1 has 4, 3 are requested by cats/blue``."""
    owners: dict[str, Fraction] = {}
    for pod in node.pods:
        value = Fraction(1) if resource == "pods" else quantity(pod.requests.get(resource, "0"))
        if value:
            owners[pod.owner] = owners.get(pod.owner, Fraction()) + value
    text = f"{node.name} has {format_quantity(resource, quantity(node.allocatable.get(resource, '0')))}"
    if not owners:
        return text
    requested = sum(owners.values(), Fraction())
    largest = sorted(owners, key=lambda owner: (-owners[owner], owner))
    by = largest[0] if len(owners) == 1 else f"{_join_limited(largest[:_MAX_LISTED])}"
    by += f" and {len(largest) - _MAX_LISTED} more" if len(largest) > _MAX_LISTED else ""
    verb = "is" if requested == 1 else "are"
    return f"{text}, {format_quantity(resource, requested)} {verb} requested by {by}"


def _placement_obstacle(node: NodeCapacity, shape: PodShape) -> str | None:
    """Why the node accepts no pod of the shape, however much capacity it has; None if it accepts
    them."""
    if not node.schedulable:
        return "accepts no pods (not ready or cordoned)"
    for label, value in (shape.scheduling.get("nodeSelector") or {}).items():
        if node.labels.get(label) != value:
            return f"lacks the label {label}={value}"
    tolerations = shape.scheduling.get("tolerations") or ()
    for taint in node.taints:
        if taint.effect != "PreferNoSchedule" and not any(_tolerates(t, taint) for t in tolerations):
            return f"has the taint {taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"
    return None


def _tolerates(toleration: Mapping[str, Any], taint: Taint) -> bool:
    """Kubernetes' rule: no effect matches every effect, and Exists without a key every taint."""
    if toleration.get("effect") not in (None, "", taint.effect):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return toleration.get("key") in (None, "", taint.key)
    return toleration.get("key") == taint.key and (toleration.get("value") or "") == taint.value


def _instances(count: int) -> str:
    return "1 instance" if count == 1 else f"{count} instances"


def _capacity_sentence(name: str, count: int, capacity: int) -> str:
    return f"{_instances(count)} of {name}: the cluster has capacity for {capacity}"


def _join_limited(parts: Iterable[str]) -> str:
    listed = list(parts)
    more = len(listed) - _MAX_LISTED
    return "; ".join(listed[:_MAX_LISTED]) + (f"; and {more} more" if more > 0 else "")


def _decimal(value: Fraction) -> str:
    """Rounded down to two decimals, so that free capacity is never overstated."""
    whole = value.numerator * 100 // value.denominator
    sign, whole = ("-", -whole) if whole < 0 else ("", whole)
    text = f"{whole // 100}.{whole % 100:02d}".rstrip("0").rstrip(".")
    return sign + text
