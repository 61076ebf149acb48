"""The runtime of a compute that cannot be used: its cluster refuses access, or its kubeconfig is
invalid.

Decides that its instances are unknown, so that the plan leaves them unchanged, and that each start
fails with the reason. Must not know Kubernetes.
"""

from __future__ import annotations

from collections.abc import Callable

from amphitrite.controlplane.core.capacity.node_capacity import NodeCapacity
from amphitrite.controlplane.core.desired.compute_clusters import PodShape
from amphitrite.controlplane.core.desired.resources import Probe, WorkloadSpec
from amphitrite.controlplane.core.observed.observations import Instance
from amphitrite.controlplane.core.storage.garbage import StoredItem
from amphitrite.controlplane.runtimes.runtime import LogQuery
from amphitrite.schemas.errors import Error


class UnreachableRuntime:
    """``error``: why the compute cannot be used."""

    name = "unreachable"

    def __init__(self, compute: str, error: Error) -> None:
        self._compute, self._error = compute, error

    def observe(self) -> tuple[Instance, ...]:
        return ()

    def unknown(self) -> frozenset[str]:
        return frozenset({self._compute})

    def start(
        self,
        workload: WorkloadSpec,
        slot: int,
        attempt: int,
        readiness: Probe,
        liveness: Probe,
        request_timeout_s: float = 5.0,
    ) -> None:
        raise self._error

    def stop(self, instance_id: str, grace_s: float) -> None:
        """Does nothing: no instance is known."""

    def forget(self, instance_id: str) -> None:
        """Does nothing: no instance is known."""

    def logs(self, endpoint: str, deployment: str, query: LogQuery) -> str:
        """Empty, so that the logs of other computes are shown."""
        return ""

    def capacity(self, compute: str) -> tuple[NodeCapacity, ...] | None:
        """None: the capacity is unknown."""
        return None

    def demand(self, workload: WorkloadSpec, shape: PodShape) -> PodShape | None:
        """None: nothing can start here."""
        return None

    def stored(self) -> tuple[StoredItem, ...]:
        """Empty: nothing is on this machine."""
        return ()

    def discard(self, item: StoredItem) -> bool:
        """False: nothing is on this machine."""
        return False

    def watch(self, wake: Callable[[], None]) -> None:
        """Does nothing: another runtime replaces this one when the compute changes."""

    def close(self) -> None:
        """Does nothing: nothing is open."""
