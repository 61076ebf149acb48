"""What a real cluster told of workloads that fail and that do not, cut to what anybody reads, and
ways to vary it."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amphitrite.controlplane.core.desired.resources import WorkloadSpec
from amphitrite.controlplane.core.observed.observations import Instance
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_facts import seconds
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_history import PodHistory
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_instances import instances
from amphitrite.controlplane.runtimes.kubernetes.workloads.object_names import STOPPING_ANNOTATION

from .golden_inputs import CASES

RECORDED = Path(__file__).parent / "recorded"
SPEC = CASES["cpu"].workload


@dataclass
class Recording:
    """JSON as the API server gives it; may be changed at will."""

    deployment: dict[str, Any]
    pods: list[dict[str, Any]]
    events: list[dict[str, Any]]
    workload: WorkloadSpec = SPEC

    @property
    def pod(self) -> dict[str, Any]:
        (pod,) = self.pods
        return pod

    def observed(self, seen: PodHistory | None = None, now: float | None = None) -> tuple[Instance, ...]:
        """``now``: long after all of it was recorded."""
        by_uid: dict[str, Sequence[dict[str, Any]]] = {}
        for event in self.events:
            by_uid[event["involvedObject"]["uid"]] = [*by_uid.get(event["involvedObject"]["uid"], ()), event]
        at = at_least(self.pods) if now is None else now
        return instances(self.workload, self.deployment, self.pods, by_uid, seen or PodHistory(), at)

    def living(self) -> Instance:
        (found,) = (one for one in self.observed() if one.phase != "exited")
        return found


def recorded(name: str) -> Recording:
    return Recording(**json.loads((RECORDED / f"{name}.json").read_text()))


def at_least(pods: Sequence[dict[str, Any]]) -> float:
    return max((seconds(pod["metadata"]["creationTimestamp"]) or 0.0 for pod in pods), default=0.0) + 45.0


def stamp(at: int) -> str:
    return f"2026-11-21T08:{at // 60:02d}:{at % 60:02d}Z"


def a_pod(name: str, *, ready: bool = True, created: int = 0, leaving: bool = False) -> dict[str, Any]:
    """A pod as it was recorded, under another name. ``created``: seconds after a certain time."""
    pod = copy.deepcopy(recorded("ready" if ready else "starting").pod)
    pod["metadata"] |= {"name": name, "uid": f"uid-{name}", "creationTimestamp": stamp(created)}
    if leaving:
        pod["metadata"]["deletionTimestamp"] = stamp(created + 60)
    return pod


def a_deployment(replicas: int, stopping: str | None = None) -> dict[str, Any]:
    deployment = copy.deepcopy(recorded("ready").deployment)
    deployment["spec"]["replicas"] = replicas
    deployment["metadata"]["annotations"] = {} if stopping is None else {STOPPING_ANNOTATION: stopping}
    return deployment


def condition(pod: dict[str, Any], kind: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in pod["status"]["conditions"] if one["type"] == kind)
    return found


def server(pod: dict[str, Any]) -> dict[str, Any]:
    """The status of the container that serves."""
    found: dict[str, Any] = pod["status"]["containerStatuses"][0]
    return found
