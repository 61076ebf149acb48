"""The capacity of the cluster's nodes, and what pods request from them.

Decides what a pod requests in total (the scheduler's rule) and who owns it. Must not know the API
server.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from amphitrite.controlplane.core.capacity.node_capacity import NodeCapacity, PodDemand, Taint, quantity
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_facts import Json, condition
from amphitrite.controlplane.runtimes.kubernetes.workloads.object_names import DEPLOYMENT_LABEL, ENDPOINT_LABEL


def capacities(nodes: Iterable[Json], pods: Iterable[Json]) -> tuple[NodeCapacity, ...]:
    """``nodes`` and ``pods``: of the whole cluster."""
    on: dict[str, list[PodDemand]] = {}
    for pod in pods:
        node = pod["spec"].get("nodeName")
        if node and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
            on.setdefault(node, []).append(PodDemand(_owner(pod), requests(pod)))
    return tuple(_node(node, on.get(node["metadata"]["name"], [])) for node in nodes)


def requests(pod: Json) -> dict[str, str]:
    """The total requests of a pod: of all containers or of the largest init container, and its
    overhead (Kubernetes' page "Sidecar containers", section "Resource sharing within containers").
    """
    spec = pod["spec"]
    total_requests: dict[str, Fraction] = {}
    for container in spec["containers"]:
        _add(total_requests, container)
    sidecars: dict[str, Fraction] = {}
    peak: dict[str, Fraction] = {}
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":  # A sidecar stays.
            _add(sidecars, container)
            _add(total_requests, container)
            continue
        for name, text in _container_requests(container).items():
            peak[name] = max(peak.get(name, Fraction()), sidecars.get(name, Fraction()) + quantity(text))
    total = {
        name: max(total_requests.get(name, Fraction()), peak.get(name, Fraction()))
        for name in {**total_requests, **peak}
    }
    for name, text in (spec.get("overhead") or {}).items():
        total[name] = total.get(name, Fraction()) + quantity(text)
    return {name: _text(value) for name, value in total.items()}


def _add(total: dict[str, Fraction], container: Json) -> None:
    for name, text in _container_requests(container).items():
        total[name] = total.get(name, Fraction()) + quantity(text)


def _container_requests(container: Json) -> dict[str, str]:
    return dict((container.get("resources") or {}).get("requests") or {})


def _text(value: Fraction) -> str:
    """In thousandths if it is not a whole number."""
    return str(value.numerator) if value.denominator == 1 else f"{-(-value * 1000 // 1)}m"


def _owner(pod: Json) -> str:
    labels = pod["metadata"].get("labels") or {}
    if ENDPOINT_LABEL in labels:
        return f"{labels[ENDPOINT_LABEL]}/{labels.get(DEPLOYMENT_LABEL)}"
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _node(node: Json, pods: list[PodDemand]) -> NodeCapacity:
    spec = node.get("spec", {})
    ready = condition(node, "Ready").get("status") == "True"
    return NodeCapacity(
        name=node["metadata"]["name"],
        allocatable=dict(node.get("status", {}).get("allocatable") or {}),
        pods=tuple(pods),
        labels=dict(node["metadata"].get("labels") or {}),
        taints=tuple(Taint(t["key"], t.get("value") or "", t["effect"]) for t in spec.get("taints") or ()),
        schedulable=ready and not spec.get("unschedulable", False),
    )
