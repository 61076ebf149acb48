"""The interface of every runtime: what starts, stops and observes instances.

Decides the contract of ``local`` (processes on this machine) and ``kubernetes`` (pods).
``tests/controlplane/runtimes/test_runtimes.py`` tests both. Must not know plans, routing or the
store.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from amphitrite.controlplane.core.capacity.node_capacity import NodeCapacity
from amphitrite.controlplane.core.desired.compute_clusters import PodShape
from amphitrite.controlplane.core.desired.resources import Probe, WorkloadSpec
from amphitrite.controlplane.core.observed.observations import Instance
from amphitrite.controlplane.core.observed.usage import InstanceUsage
from amphitrite.controlplane.core.storage.garbage import StoredItem

#: Azure's names of the containers: the one that serves, and the one that fetches the model first.
Container = Literal["inference-server", "storage-initializer"]


@dataclass(frozen=True, slots=True)
class LogQuery:
    """Which lines of the logs: at most the last ``tail`` of each log, and only those of the last
    ``since_s`` seconds unless it is None. ``previous``: those of the attempt before the newest."""

    tail: int
    container: Container = "inference-server"
    since_s: float | None = None
    previous: bool = False


class Runtime(Protocol):
    """Every method is idempotent and returns quickly. A later ``observe`` shows the effect."""

    name: str

    def observe(self) -> tuple[Instance, ...]:
        """All known instances, sorted by id. Exited ones stay until ``forget``."""
        ...

    def unknown(self) -> frozenset[str]:
        """Names of computes whose instances are not known yet. The plan leaves them unchanged."""
        ...

    def start(
        self,
        workload: WorkloadSpec,
        slot: int,
        attempt: int,
        readiness: Probe,
        liveness: Probe,
        request_timeout_s: float = 5.0,
    ) -> None:
        """Starts an instance in the slot, unless the slot has one. A runtime that names its
        instances compares the attempt too.

        ``request_timeout_s``: how long a request in flight may take when the instance stops. Raises
        Error("RuntimeUnavailable") if this runtime cannot start any instance.
        """
        ...

    def stop(self, instance_id: str, grace_s: float) -> None:
        """Asks the instance to exit, and kills it after ``grace_s`` seconds. Ignores an unknown or
        exited one.

        Raises Error if the cluster refuses the request or does not answer.
        """
        ...

    def forget(self, instance_id: str) -> None:
        """Deletes the record and log of an exited instance."""
        ...

    def logs(self, endpoint: str, deployment: str, query: LogQuery) -> str:
        """The lines of each instance's log, under a heading. The newest instance is last. Includes
        crashed ones."""
        ...

    def capacity(self, compute: str) -> tuple[NodeCapacity, ...] | None:
        """The nodes of a compute with their requested resources. None without nodes, or without
        permission to list them.

        Raises Error("KubernetesUnaccessible") if the cluster does not answer.
        """
        ...

    def demand(self, workload: WorkloadSpec, shape: PodShape) -> PodShape | None:
        """The resources that one instance requests, for the ``shape`` of its instance type. None if
        the runtime counts none.

        Raises Error("InvalidDeploymentSpec") for resources that no instance can have.
        """
        ...

    def stored(self) -> tuple[StoredItem, ...]:
        """What instances take on this machine; empty where they run elsewhere."""
        ...

    def discard(self, item: StoredItem) -> bool:
        """Deletes one of ``stored``, unless an instance needs it now. Returns whether it was
        deleted."""
        ...

    def watch(self, wake: Callable[[], None]) -> None:
        """Calls ``wake``, from any thread, when the result of ``observe`` changes."""
        ...

    def close(self) -> None:
        """Stops watching. Instances keep running."""
        ...


class MeasuredRuntime(Runtime, Protocol):
    """A runtime whose instances' processor and memory can be measured here."""

    def usage(self) -> tuple[InstanceUsage, ...]:
        """What each ready instance has used and holds now."""
        ...
