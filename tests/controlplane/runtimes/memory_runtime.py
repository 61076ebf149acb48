"""Instances that exist only in this object: for tests of whatever uses a runtime.

Decides nothing by itself: tests say what becomes of an instance (``ready``, ``crash``,
``fail_once``), or let ``settle`` take the usual course. Keeps the same contract as the runtimes
that run something.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from amphitrite.controlplane.core.capacity.node_capacity import NodeCapacity
from amphitrite.controlplane.core.desired.compute_clusters import PodShape
from amphitrite.controlplane.core.desired.resources import Probe, WorkloadSpec
from amphitrite.controlplane.core.observed.observations import Instance
from amphitrite.controlplane.core.storage.garbage import StoredItem
from amphitrite.controlplane.runtimes.log_text import previous_attempts, render
from amphitrite.controlplane.runtimes.runtime import LogQuery
from amphitrite.dataplane.table.routing_table import Address
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key


class MemoryRuntime:
    """``broken``: digests of models that cannot be loaded, with the reason. ``clock``: seconds
    since the epoch. ``nodes``: what ``capacity`` answers for any compute."""

    name = "memory"

    def __init__(
        self,
        clock: Callable[[], float],
        broken: dict[str, str] | None = None,
        nodes: tuple[NodeCapacity, ...] | None = None,
    ) -> None:
        self._clock, self.broken, self._nodes = clock, broken or {}, nodes
        self._instances: dict[str, Instance] = {}
        #: What instances have left on this machine.
        self.left_behind: list[StoredItem] = []
        self._faults: dict[str, Error] = {}
        self._wakes: list[Callable[[], None]] = []
        self._ports = iter(range(20_000, 60_000))

    # -- the contract ------------------------------------------------------------------------------
    def observe(self) -> tuple[Instance, ...]:
        self._fault("observe")
        return tuple(self._instances[instance_id] for instance_id in sorted(self._instances))

    def unknown(self) -> frozenset[str]:
        return frozenset()

    def start(
        self,
        workload: WorkloadSpec,
        slot: int,
        attempt: int,
        readiness: Probe,
        liveness: Probe,
        request_timeout_s: float = 5.0,
    ) -> None:
        self._fault("start")
        instance_id = f"{workload.name}-{slot}-{attempt}"
        if instance_id not in self._instances:
            address = Address("127.0.0.1", next(self._ports))
            self._put(Instance(instance_id, workload, slot, attempt, "starting", address, self._clock()))

    def stop(self, instance_id: str, grace_s: float) -> None:
        self._fault("stop")
        instance = self._instances.get(instance_id)
        if instance is not None and instance.phase not in ("stopping", "exited"):
            self._put(replace(instance, phase="stopping", requested_stop=True))

    def forget(self, instance_id: str) -> None:
        self._fault("forget")
        instance = self._instances.get(instance_id)
        if instance is not None and instance.phase == "exited":
            del self._instances[instance_id]
            self._notify()

    def logs(self, endpoint: str, deployment: str, query: LogQuery) -> str:
        self._fault("logs")
        wanted = (key(endpoint), key(deployment))
        mine = [i for i in self._instances.values() if (i.workload.endpoint, i.workload.deployment) == wanted]
        if query.previous:
            mine = previous_attempts(mine, lambda one: (one.workload.name, one.slot))
        return render([(i, ([i.reason] if i.reason else [])[: query.tail]) for i in mine])

    def capacity(self, compute: str) -> tuple[NodeCapacity, ...] | None:
        return self._nodes

    def demand(self, workload: WorkloadSpec, shape: PodShape) -> PodShape | None:
        return shape

    def stored(self) -> tuple[StoredItem, ...]:
        return tuple(replace(item, needed=item.name in self._instances) for item in self.left_behind)

    def discard(self, item: StoredItem) -> bool:
        self.left_behind = [one for one in self.left_behind if one.name != item.name]
        return True

    def watch(self, wake: Callable[[], None]) -> None:
        self._wakes.append(wake)

    def close(self) -> None:
        self._wakes.clear()

    # -- what tests decide -------------------------------------------------------------------------
    def fail_once(self, verb: str, error: Error) -> None:
        """The next call of ``verb`` raises ``error`` and does nothing."""
        self._faults[verb] = error

    def ready(self, instance_id: str) -> None:
        self._change(instance_id, phase="ready", ready_at=self._clock(), engine="memory")

    def unready(self, instance_id: str) -> None:
        self._change(instance_id, phase="unready")

    def crash(self, instance_id: str, exit_code: int = 1, reason: str = "it crashed") -> None:
        """The instance ends by itself, at load time or later."""
        self._change(
            instance_id, phase="exited", address=None, exited_at=self._clock(), exit_code=exit_code, reason=reason
        )

    def settle(self) -> None:
        """The usual course: what starts becomes ready, or fails when its model is ``broken``; what
        stops has ended."""
        for instance in tuple(self._instances.values()):
            if instance.phase == "stopping":
                self._change(instance.id, phase="exited", address=None, exited_at=self._clock(), exit_code=0)
            elif instance.phase == "starting" and (reason := self.broken.get(instance.workload.model.digest)):
                self.crash(instance.id, reason=reason)
            elif instance.phase == "starting":
                self.ready(instance.id)

    def _change(self, instance_id: str, **changes: Any) -> None:
        self._put(replace(self._instances[instance_id], **changes))

    def _put(self, instance: Instance) -> None:
        self._instances[instance.id] = instance
        self._notify()

    def _notify(self) -> None:
        for wake in tuple(self._wakes):
            wake()

    def _fault(self, verb: str) -> None:
        if error := self._faults.pop(verb, None):
            raise error
