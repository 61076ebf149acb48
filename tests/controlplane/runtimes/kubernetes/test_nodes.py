"""What pods count for, as the scheduler counts, and which nodes take any."""

from __future__ import annotations

from typing import Any

from amphitrite.controlplane.core.capacity.node_capacity import NodeCapacity, PodDemand, Taint
from amphitrite.controlplane.runtimes.kubernetes.pods.node_facts import capacities, requests
from amphitrite.controlplane.runtimes.kubernetes.workloads.object_names import labels

from .recordings import SPEC


def container(restart: str | None = None, **asked: str) -> dict[str, Any]:
    return {"resources": {"requests": asked}, **({"restartPolicy": restart} if restart else {})}


def pod(name: str, node: str | None, phase: str = "Running", of: dict[str, str] | None = None) -> dict[str, Any]:
    spec = {"containers": [container(cpu="1")], **({"nodeName": node} if node else {})}
    return {"metadata": {"name": name, "namespace": "ns", "labels": of}, "spec": spec, "status": {"phase": phase}}


def test_containers_add_up_and_the_greediest_before_them_counts() -> None:
    spec = {
        "initContainers": [
            container(memory="3Gi"),
            container("Always", cpu="100m", memory="1Gi"),
            container(cpu="2", memory="1Gi"),
        ],
        "containers": [container(cpu="250m", memory="1Gi"), container(cpu="1")],
        "overhead": {"cpu": "50m"},
    }
    assert requests({"spec": spec}) == {"cpu": "2150m", "memory": str(3 * 1024**3)}


def test_nodes_with_the_living_pods_on_them() -> None:
    node = {
        "metadata": {"name": "one", "labels": {"gpu": "a100"}},
        "spec": {"unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": "4"}, "conditions": [{"type": "Ready", "status": "True"}]},
    }
    pods = [
        pod("ours", "one", of=labels(SPEC, "amphitrite")),
        pod("theirs", "one"),
        pod("ended", "one", "Succeeded"),
        pod("waiting", None, "Pending"),
    ]
    demands = (PodDemand("cats/blue", {"cpu": "1"}), PodDemand("ns/theirs", {"cpu": "1"}))
    want = NodeCapacity("one", {"cpu": "4"}, demands, {"gpu": "a100"}, (Taint("k", "", "NoSchedule"),), False)
    assert capacities([node], pods) == (want,)
