"""Processor time and memory of the processes of an instance on this machine.

Decides what counts: its processes and what their children had used when they ended. What it is
meant to have is that of its instance type, or of this machine if that is less. Must not know rules
or metrics.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil

from amphitrite.controlplane.core.desired import instance_types
from amphitrite.controlplane.core.observed.usage import InstanceUsage
from amphitrite.controlplane.runtimes.isolation import memory_watch
from amphitrite.controlplane.runtimes.local.instance_records import InstanceRecord

#: Fields of /proc/PID/stat after the name of the program: utime, stime, cutime and cstime, proc(5).
_TIMES = slice(11, 15)


def of_ready(records: Iterable[InstanceRecord], now: float) -> tuple[InstanceUsage, ...]:
    """The usage of the instances that are ready: one that loads its model says nothing about the
    demand."""
    cores, memory = os.cpu_count() or 1, psutil.virtual_memory().total
    found = []
    for record in records:
        if record.phase != "ready" or record.process is None:
            continue
        spec = record.workload
        kind = instance_types.find(spec.instance_type)
        usage = InstanceUsage(
            record.id,
            spec.endpoint,
            spec.deployment,
            now,
            cpu_seconds(record.process.pid),
            min(kind.cores, cores),
            memory_watch.used_bytes(record.process.pid),
            min(int(kind.memory_gib * 1024**3), memory),
        )
        found.append(usage)
    return tuple(found)


def cpu_seconds(pid: int, proc: Path = Path("/proc")) -> float:
    """Of a process, its descendants, and those that have ended. 0 for a process that has ended."""
    ticks = 0
    for one in (pid, *memory_watch.descendants(pid, proc)):
        with suppress(OSError, ValueError):
            stat = (proc / str(one) / "stat").read_text(encoding="utf-8", errors="replace")
            # The name of the program is in brackets, and may contain anything.
            ticks += sum(int(number) for number in stat.rpartition(")")[2].split()[_TIMES])
    return ticks / os.sysconf("SC_CLK_TCK")
