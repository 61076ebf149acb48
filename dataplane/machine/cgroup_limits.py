"""What this process may use of the machine, as its control group says.

Decides how many worker threads Envoy gets and how much memory. A container's quota is no property of the machine: as
many threads as cores under a quota of two would be throttled all at once. Must not know Envoy's configuration.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
#: Not a large machine's whole width: each worker holds connections to every instance.
_WORKERS_MAX = 8
#: What a container needs beside Envoy's heap: the agent, and Envoy's own code and stacks.
_BESIDE_HEAP = 192 * 1024 * 1024


def workers(cgroup: Path = _CGROUP, cores: int | None = None) -> int:
    """Envoy's worker threads: the cores that may be used, the CPU quota rounded up, and at most 8."""
    available = len(os.sched_getaffinity(0)) if cores is None else cores
    quota = cpu_quota(cgroup)
    return max(1, min(available, _WORKERS_MAX, available if quota is None else math.ceil(quota)))


def cpu_quota(cgroup: Path = _CGROUP) -> float | None:
    """Cores that the control group may use on average (cgroup v2 ``cpu.max``, v1 ``cpu.cfs_quota_us``); None: all."""
    words = _words(cgroup / "cpu.max")
    if not words:
        words = [*_words(cgroup / "cpu/cpu.cfs_quota_us"), *_words(cgroup / "cpu/cpu.cfs_period_us")]
    if len(words) != 2 or not all(word.isdecimal() for word in words) or int(words[1]) == 0:
        return None
    return int(words[0]) / int(words[1])


def heap_bytes(cgroup: Path = _CGROUP) -> int | None:
    """What Envoy's heap may have of the control group's memory limit; None without one.

    Envoy sheds requests before it reaches this, where the kernel would kill it with all that it has in flight.
    """
    words = _words(cgroup / "memory.max") or _words(cgroup / "memory/memory.limit_in_bytes")
    # Version 1 says "no limit" by a number larger than any memory.
    if len(words) != 1 or not words[0].isdecimal() or int(words[0]) >= 2**60:
        return None
    limit = int(words[0])
    return max(limit // 2, limit - _BESIDE_HEAP)


def _words(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return []
