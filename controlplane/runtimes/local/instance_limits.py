"""What an instance may use of this machine, by its instance type.

Decides the numbers, and that the kernel holds them by control groups, or where none can be made, a
watch of the memory. Must not know probes, or how a process is started.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection
from pathlib import Path

from amphitrite.controlplane.core.desired import instance_types
from amphitrite.controlplane.runtimes.isolation import memory_watch
from amphitrite.controlplane.runtimes.isolation.control_groups import ControlGroups, Limits
from amphitrite.dataplane.machine.processes import ProcessRecord

log = logging.getLogger(__name__)

#: Processes and threads of an instance, and more for each core: libraries start threads for each.
_PROCESSES, _PROCESSES_FOR_A_CORE = 2048, 1024


class InstanceLimits:
    """``groups``: those of this server; None: instances have no limits."""

    def __init__(self, groups: ControlGroups | None) -> None:
        self._groups = groups

    def create(self, instance_id: str, instance_type: str) -> tuple[Path, ...]:
        """The files by which a process joins the instance's control groups; empty without any."""
        if self._groups is None:
            return ()
        found = instance_types.find(instance_type)
        limits = Limits(_bytes(instance_type), found.cores, processes_max())
        try:
            return self._groups.create(instance_id, limits)
        except OSError as exc:
            log.warning("no control group for %s, so its memory is watched: %s", instance_id, exc)
            self._groups.remove(instance_id)
            return ()

    def exceeded(self, instance_id: str, instance_type: str, process: ProcessRecord | None) -> str | None:
        """Why the instance has to end; None: it keeps to its limits."""
        if self._groups is None:
            return None
        if self._groups.limits_memory_of(instance_id):
            too_much = self._groups.out_of_memory(instance_id)
        else:
            too_much = process is not None and memory_watch.used_bytes(process.pid) > _bytes(instance_type)
        if not too_much:
            return None
        found = instance_types.find(instance_type)
        return f"it needed more memory than the {found.memory_gib:g} GiB of {found.name}; choose a larger instance_type"

    def remove(self, instance_id: str) -> None:
        if self._groups is not None:
            self._groups.remove(instance_id)

    def remove_all(self, needed: Collection[str]) -> None:
        """Of all instances but these."""
        if self._groups is not None:
            self._groups.remove_all(needed)


NO_LIMITS = InstanceLimits(None)


def processes_max() -> int:
    """How many processes and threads an instance may have."""
    return _PROCESSES + _PROCESSES_FOR_A_CORE * (os.cpu_count() or 1)


def _bytes(instance_type: str) -> int:
    return int(instance_types.find(instance_type).memory_gib * 1024**3)
