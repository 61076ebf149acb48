"""Where instances run: the verbs the reconciler needs, whatever is behind them.

Decides the contract that ``local`` (processes on this machine) and ``kubernetes`` (pods) keep;
``tests/controlplane/test_runtimes.py`` holds them to it. Must not know plans, routing or the store.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

from amphitrite.controlplane.core.capacity.node_capacity import NodeCapacity
from amphitrite.controlplane.core.desired.compute_clusters import PodShape
from amphitrite.controlplane.core.desired.resources import Probe, WorkloadSpec
from amphitrite.controlplane.core.observed.observations import Instance

#: Azure's names for what serves and for what fetches the model before.
Container = Literal["inference-server", "storage-initializer"]


class Runtime(Protocol):
    """Every verb is idempotent and returns quickly; what it leads to is seen by a later ``observe``."""

    name: str

    def observe(self) -> tuple[Instance, ...]:
        """All instances with a record, sorted by id, the exited ones too until ``forget``."""
        ...

    def unknown(self) -> frozenset[str]:
        """Names of computes of which ``observe`` can say nothing yet: what runs there is left as it is."""
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
        """Start an instance in that slot; nothing happens when the slot (and, where a runtime names its instances,
        the attempt) has one already. ``request_timeout_s``: what a request in flight gets when it must stop.

        Raises Error("RuntimeUnavailable") when this runtime cannot start anything at all.
        """
        ...

    def stop(self, instance_id: str, grace_s: float) -> None:
        """Ask the instance to end, kill it after ``grace_s``. Unknown or exited: nothing happens.

        Raises Error when whoever runs it refuses or does not answer."""
        ...

    def forget(self, instance_id: str) -> None:
        """Drop the record and log of an exited instance."""
        ...

    def logs(self, endpoint: str, deployment: str, tail: int, container: Container = "inference-server") -> str:
        """The last ``tail`` lines of each instance's log under a heading, newest instance last; crashed ones too."""
        ...

    def capacity(self, compute: str) -> tuple[NodeCapacity, ...] | None:
        """The nodes of a compute with what is asked of them; None where there are none, or nobody may see them.

        Raises Error("KubernetesUnaccessible") when the cluster does not answer."""
        ...

    def demand(self, workload: WorkloadSpec, shape: PodShape) -> PodShape | None:
        """What one instance asks of a node, given its instance type's ``shape``; None where nothing is counted.

        Raises Error("InvalidDeploymentSpec") for resources that no instance can have."""
        ...

    def watch(self, wake: Callable[[], None]) -> None:
        """Call ``wake`` (from any thread) whenever ``observe`` would answer differently than before."""
        ...

    def close(self) -> None:
        """Stop watching. Instances live on."""
        ...
