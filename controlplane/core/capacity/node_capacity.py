"""Room on a cluster: whether so many pods of one shape fit onto its nodes now, with the arithmetic in words.

Decides what counts as room: what a node has to give, less what the pods on it ask for, on nodes that take the pod at
all (node selector, taints). Affinity and topology spread are left to the scheduler, which has the last word anyway:
between this look and its own the room may be gone. Must not know Kubernetes' client.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from amphitrite.controlplane.core.desired.compute_clusters import PodShape

#: Kubernetes' suffixes of quantities (apimachinery, ``resource.Quantity``).
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
#: Nodes that a sentence names.
_NAMED = 4


@dataclass(frozen=True, slots=True)
class Taint:
    """As in a node's ``spec.taints``."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


@dataclass(frozen=True, slots=True)
class PodDemand:
    """What one pod asks of the node that it is on. ``owner``: whose it is in words, ``cats/blue`` for a deployment of
    ours, else ``namespace/pod``. ``requests``: quantities of all its containers together."""

    owner: str
    requests: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class NodeCapacity:
    """A node: what it can give to pods (``status.allocatable``) and the living pods that it has. ``schedulable``: it is
    ready and not cordoned."""

    name: str
    allocatable: Mapping[str, str]
    pods: tuple[PodDemand, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    schedulable: bool = True


@dataclass(frozen=True, slots=True)
class Fit:
    """``room``: how many pods of the shape fit now; ``sentence``: the arithmetic."""

    fits: bool
    room: int
    sentence: str


def quantity(text: str) -> Fraction:
    """``100m`` -> 1/10, ``2Gi`` -> 2147483648, ``1e3`` -> 1000. Raises ValueError with a sentence."""
    match = _QUANTITY.match(text.strip())
    suffix = match["suffix"] or "" if match else ""
    if match is None or suffix not in _SUFFIXES:
        raise ValueError(f"{text!r} is not a quantity such as 500m, 2 or 4Gi")
    return Fraction(match["number"]) * Fraction(10) ** int(match["power"] or 0) * _SUFFIXES[suffix]


def asked(shape: PodShape) -> dict[str, Fraction]:
    """What a pod of the shape asks for: its requests, and its limits of what it gives no request for, as Kubernetes
    defaults them. Zeros are left out."""
    wanted = {name: quantity(text) for name, text in (*shape.limits, *shape.requests)}
    return {name: value for name, value in wanted.items() if value > 0}


def fits(nodes: Sequence[NodeCapacity], shape: PodShape, count: int) -> Fit:
    """Whether ``count`` more pods of ``shape`` fit onto ``nodes`` as they are now.

    All pods are alike, so that packing them is dividing each node's rest by what one pod asks for.
    """
    demand = asked(shape)
    refusals = {node.name: reason for node in nodes if (reason := _refusal(node, shape))}
    taking = [node for node in nodes if node.name not in refusals]
    free = {node.name: _free(node, demand) for node in taking}
    room = sum(_pods(rest, demand) for rest in free.values())
    if not taking:
        why = f"no node takes them: {_listed([f'{name} {reason}' for name, reason in refusals.items()])}"
        why = why if nodes else "the cluster has no node"
        return Fit(count <= 0, 0, f"{_instances(count)} of {shape.name} cannot be placed: {why}")
    if not demand:
        return Fit(count <= room, room, _room_sentence(shape.name, count, room))
    scarce = _scarcest(demand, free, count)
    return Fit(count <= room, room, _arithmetic(shape.name, count, room, scarce, demand, taking, free, refusals))


def free(node: NodeCapacity, resource: str) -> Fraction:
    """What is left of one resource of a node; of ``pods`` each takes one."""
    has = quantity(node.allocatable.get(resource, "0"))
    if resource == "pods":
        return has - len(node.pods)
    return has - sum((quantity(pod.requests[resource]) for pod in node.pods if resource in pod.requests), Fraction())


def shown(resource: str, value: Fraction) -> str:
    """A quantity as people write it: memory in GiB, other things as numbers with at most two decimals."""
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        return f"{_decimal(value / 1024**3)} GiB"
    return _decimal(value)


def _free(node: NodeCapacity, demand: Mapping[str, Fraction]) -> dict[str, Fraction]:
    counted = [*demand, "pods"] if "pods" in node.allocatable else demand
    return {resource: free(node, resource) for resource in counted}


def _pods(rest: Mapping[str, Fraction], demand: Mapping[str, Fraction], only: str | None = None) -> int:
    """How many pods the rest of a node has room for; ``only``: if nothing but this resource were scarce."""
    bounds = [rest[name] // demand.get(name, Fraction(1)) for name in rest if only in (None, name)]
    return max(0, min(bounds, default=0))


def _scarcest(demand: Mapping[str, Fraction], free: Mapping[str, Mapping[str, Fraction]], count: int) -> str:
    """The resource that leaves the least room; of equals the one that clusters have least of: a device."""
    names = [*demand, "pods"] if all("pods" in rest for rest in free.values()) else list(demand)
    order = {name: ("/" not in name, name) for name in names}
    return min(names, key=lambda name: (sum(_pods(rest, demand, name) for rest in free.values()), order[name]))


def _arithmetic(
    name: str,
    count: int,
    room: int,
    scarce: str,
    demand: Mapping[str, Fraction],
    nodes: Sequence[NodeCapacity],
    free: Mapping[str, Mapping[str, Fraction]],
    refusals: Mapping[str, str],
) -> str:
    one = demand.get(scarce, Fraction(1))
    total = sum((quantity(node.allocatable.get(scarce, "0")) for node in nodes), Fraction())
    left = sum((max(rest[scarce], Fraction()) for rest in free.values()), Fraction())
    unit = "" if scarce == "memory" else f" {scarce}"
    text = f"{_instances(count)} of {name} need{'s' if count == 1 else ''} {shown(scarce, one * count)}"
    text += f"{unit or ' of memory'}; {shown(scarce, left)} of {shown(scarce, total)} is free"
    text += f": {_listed([_node(node, scarce) for node in nodes])}"
    if count > room and left >= one * count:
        text += f"; there is room for {room}, because one instance has to fit on one node"
    if refusals:
        text += f"; not counted: {_listed([f'{node} {reason}' for node, reason in refusals.items()])}"
    return text


def _node(node: NodeCapacity, resource: str) -> str:
    """``node-1 has 4, 3 are asked for by cats/blue``."""
    owners: dict[str, Fraction] = {}
    for pod in node.pods:
        value = Fraction(1) if resource == "pods" else quantity(pod.requests.get(resource, "0"))
        if value:
            owners[pod.owner] = owners.get(pod.owner, Fraction()) + value
    text = f"{node.name} has {shown(resource, quantity(node.allocatable.get(resource, '0')))}"
    if not owners:
        return text
    taken = sum(owners.values(), Fraction())
    largest = sorted(owners, key=lambda owner: (-owners[owner], owner))
    by = largest[0] if len(owners) == 1 else f"{_listed(largest[:_NAMED])}"
    by += f" and {len(largest) - _NAMED} more" if len(largest) > _NAMED else ""
    verb = "is" if taken == 1 else "are"
    return f"{text}, {shown(resource, taken)} {verb} asked for by {by}"


def _refusal(node: NodeCapacity, shape: PodShape) -> str | None:
    """Why the node takes no pod of the shape, whatever room it has."""
    if not node.schedulable:
        return "takes no pods now (not ready, or cordoned)"
    for label, value in (shape.scheduling.get("nodeSelector") or {}).items():
        if node.labels.get(label) != value:
            return f"has not the label {label}={value}"
    tolerations = shape.scheduling.get("tolerations") or ()
    for taint in node.taints:
        if taint.effect != "PreferNoSchedule" and not any(_tolerates(t, taint) for t in tolerations):
            return f"has the taint {taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"
    return None


def _tolerates(toleration: Mapping[str, Any], taint: Taint) -> bool:
    """As Kubernetes reads a toleration: no effect means every effect, Exists without a key every taint."""
    if toleration.get("effect") not in (None, "", taint.effect):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return toleration.get("key") in (None, "", taint.key)
    return toleration.get("key") == taint.key and (toleration.get("value") or "") == taint.value


def _instances(count: int) -> str:
    return "1 instance" if count == 1 else f"{count} instances"


def _room_sentence(name: str, count: int, room: int) -> str:
    return f"{_instances(count)} of {name}: the cluster has room for {room}"


def _listed(parts: Iterable[str]) -> str:
    listed = list(parts)
    more = len(listed) - _NAMED
    return "; ".join(listed[:_NAMED]) + (f"; and {more} more" if more > 0 else "")


def _decimal(value: Fraction) -> str:
    """Rounded down to two decimals: what is free is never said to be more than it is."""
    whole = value.numerator * 100 // value.denominator
    sign, whole = ("-", -whole) if whole < 0 else ("", whole)
    text = f"{whole // 100}.{whole % 100:02d}".rstrip("0").rstrip(".")
    return sign + text
