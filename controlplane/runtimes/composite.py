"""Several runtimes as one: this machine, and one cluster for each compute.

Decides which runtime gets a call, by the name of the workload's compute. Computes may be added and
removed at any time. Must not know what the runtimes run on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from amphitrite.controlplane.core.capacity.node_capacity import NodeCapacity
from amphitrite.controlplane.core.desired.compute_clusters import PodShape
from amphitrite.controlplane.core.desired.resources import LOCAL, Probe, WorkloadSpec
from amphitrite.controlplane.core.observed.observations import Instance
from amphitrite.controlplane.core.storage.garbage import StoredItem
from amphitrite.controlplane.runtimes.runtime import LogQuery, Runtime
from amphitrite.schemas.errors import Error


class CompositeRuntime:
    """``local``: the runtime of this machine; None if nothing runs on it. Safe for any thread."""

    name = "composite"

    def __init__(self, local: Runtime | None = None) -> None:
        self._lock = threading.Lock()
        self._members: dict[str, Runtime] = {LOCAL: local} if local is not None else {}
        self._owners: dict[str, str] = {}
        self._wakes: list[Callable[[], None]] = []
        if local is not None:
            local.watch(self._notify)

    # -- computes ----------------------------------------------------------------------------------
    def add(self, compute: str, runtime: Runtime) -> None:
        """Makes ``runtime`` run the workloads of ``compute``. Closes the former runtime."""
        with self._lock:
            before, self._members[compute] = self._members.get(compute), runtime
        runtime.watch(self._notify)
        if before is not None:
            before.close()
        self._notify()

    def remove(self, compute: str) -> None:
        """Removes ``compute``, if it is known. Its instances keep running."""
        with self._lock:
            member = self._members.pop(compute, None)
        if member is not None:
            member.close()
            self._notify()

    def member(self, compute: str) -> Runtime:
        """The runtime of ``compute``. Raises Error("ResourceNotFound")."""
        with self._lock:
            member = self._members.get(compute)
        if member is None:
            hint = "list the attached computes: ml compute list"
            raise Error("ResourceNotFound", f"compute {compute} is not attached", target=compute, hint=hint)
        return member

    def computes(self) -> tuple[str, ...]:
        """Names of the computes that workloads can run on now, sorted."""
        with self._lock:
            return tuple(sorted(self._members))

    # -- the contract ------------------------------------------------------------------------------
    def observe(self) -> tuple[Instance, ...]:
        with self._lock:
            members = dict(self._members)
        observed = {compute: member.observe() for compute, member in members.items()}
        self._owners = {one.id: compute for compute, many in observed.items() for one in many}
        return tuple(sorted((one for many in observed.values() for one in many), key=lambda one: one.id))

    def unknown(self) -> frozenset[str]:
        return frozenset().union(*(member.unknown() for member in self._all()))

    def start(
        self,
        workload: WorkloadSpec,
        slot: int,
        attempt: int,
        readiness: Probe,
        liveness: Probe,
        request_timeout_s: float = 5.0,
    ) -> None:
        self.member(workload.compute).start(workload, slot, attempt, readiness, liveness, request_timeout_s)

    def stop(self, instance_id: str, grace_s: float) -> None:
        for member in self._owner(instance_id):
            member.stop(instance_id, grace_s)

    def forget(self, instance_id: str) -> None:
        for member in self._owner(instance_id):
            member.forget(instance_id)

    def logs(self, endpoint: str, deployment: str, query: LogQuery) -> str:
        return "".join(member.logs(endpoint, deployment, query) for member in self._all())

    def capacity(self, compute: str) -> tuple[NodeCapacity, ...] | None:
        with self._lock:
            member = self._members.get(compute)
        return None if member is None else member.capacity(compute)

    def demand(self, workload: WorkloadSpec, shape: PodShape) -> PodShape | None:
        with self._lock:
            member = self._members.get(workload.compute)
        return None if member is None else member.demand(workload, shape)

    def stored(self) -> tuple[StoredItem, ...]:
        return tuple(item for member in self._all() for item in member.stored())

    def discard(self, item: StoredItem) -> bool:
        return any(member.discard(item) for member in self._all())

    def watch(self, wake: Callable[[], None]) -> None:
        self._wakes.append(wake)

    def close(self) -> None:
        self._wakes.clear()
        for member in self._all():
            member.close()

    def _owner(self, instance_id: str) -> tuple[Runtime, ...]:
        """The runtime of the instance, as of the last ``observe``. All runtimes for an unseen
        instance, because the others ignore it.

        Ids are unique over all computes, because a workload's name depends on its compute.
        """
        with self._lock:
            member = self._members.get(self._owners.get(instance_id, ""))
            return (member,) if member is not None else tuple(self._members.values())

    def _all(self) -> tuple[Runtime, ...]:
        with self._lock:
            return tuple(self._members[compute] for compute in sorted(self._members))

    def _notify(self) -> None:
        for wake in tuple(self._wakes):
            wake()
