"""What this process may use of the machine, by its control group.

Decides the proxy's number of worker threads and its memory. A machine has more cores than a
container's CPU quota: with a thread for each core under a quota of two, all threads would be
throttled at once. Must not know a proxy's configuration. Source: the kernel's document "Control
Group v2".
"""

from __future__ import annotations

import math
import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
#: Fewer than a large machine's cores: each worker thread keeps connections to every instance.
_WORKERS_MAX = 8
#: What a container needs besides the proxy's heap: the agent, and the proxy's own code and stacks.
_BESIDE_HEAP = 192 * 1024 * 1024
_MACHINE_HEAP_MIN = 1024 * 1024 * 1024


def workers(cgroup: Path = _CGROUP, cores: int | None = None) -> int:
    """The proxy's worker threads: the available cores or the CPU quota, rounded up, at most 8."""
    available = len(os.sched_getaffinity(0)) if cores is None else cores
    quota = cpu_quota(cgroup)
    return max(1, min(available, _WORKERS_MAX, available if quota is None else math.ceil(quota)))


def cpu_quota(cgroup: Path = _CGROUP) -> float | None:
    """The cores that the control group may use on average (cgroup v2 ``cpu.max``, v1
    ``cpu.cfs_quota_us``). None: all."""
    fields = _fields(cgroup / "cpu.max")
    if not fields:
        fields = [*_fields(cgroup / "cpu/cpu.cfs_quota_us"), *_fields(cgroup / "cpu/cpu.cfs_period_us")]
    if len(fields) != 2 or not all(field.isdecimal() for field in fields) or int(fields[1]) == 0:
        return None
    return int(fields[0]) / int(fields[1])


def heap_bytes(cgroup: Path = _CGROUP) -> int | None:
    """How much of the control group's memory limit the proxy's heap may have, in bytes; None: there
    is no limit.

    The proxy sheds requests before it reaches this size. At the limit itself the kernel would kill
    it with all that is in flight.
    """
    fields = _fields(cgroup / "memory.max") or _fields(cgroup / "memory/memory.limit_in_bytes")
    # Version 1 expresses "no limit" as a number larger than any memory.
    if len(fields) != 1 or not fields[0].isdecimal() or int(fields[0]) >= 2**60:
        return None
    limit = int(fields[0])
    return max(limit // 2, limit - _BESIDE_HEAP)


def machine_heap_bytes() -> int:
    """How much the proxy's heap may have on a machine that it shares with other programs: a quarter
    of its memory, and a gigabyte at least. A thousand endpoints need half of that."""
    return max(_MACHINE_HEAP_MIN, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4)


def _fields(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return []
