"""The runtime of a compute that cannot be worked with: its cluster refuses us, or its kubeconfig is of no use.

Decides that nothing is known of what runs there, so that it is left as it is, and that whatever is to start there is
told why it cannot.
"""

from __future__ import annotations

from collections.abc import Callable

from amphitrite.controlplane.core.capacity.node_capacity import NodeCapacity
from amphitrite.controlplane.core.desired.compute_clusters import PodShape
from amphitrite.controlplane.core.desired.resources import Probe, WorkloadSpec
from amphitrite.controlplane.core.observed.observations import Instance
from amphitrite.controlplane.runtimes.runtime import Container
from amphitrite.schemas.errors import Error


class UnreachableRuntime:
    """``error``: why."""

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
        """Nothing: no instance is known."""

    def forget(self, instance_id: str) -> None:
        """Nothing: no instance is known."""

    def logs(self, endpoint: str, deployment: str, tail: int, container: Container = "inference-server") -> str:
        """None: those of other computes are told all the same."""
        return ""

    def capacity(self, compute: str) -> tuple[NodeCapacity, ...] | None:
        """Unknown: the cluster does not answer."""
        return None

    def demand(self, workload: WorkloadSpec, shape: PodShape) -> PodShape | None:
        """Unknown: nothing can start here."""
        return None

    def watch(self, wake: Callable[[], None]) -> None:
        """Nothing changes here; another runtime comes in its place."""

    def close(self) -> None:
        """Nothing is open."""
