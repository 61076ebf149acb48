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


def workers(cgroup: Path = _CGROUP, cores: int | None = None) -> int:
    """The proxy's worker threads: the available cores or the CPU quota, rounded up, at most 8."""
    available = len(os.sched_getaffinity(0)) if cores is None else cores
    quota = cpu_quota(cgroup)
    return max(1, min(available, _WORKERS_MAX, available if quota is None else math.ceil(quota)))


def cpu_quota(cgroup: Path = _CGROUP) -> float | None:
    """The cores that the control group may use on average (cgroup v2 ``cpu.max``, v1
    ``cpu.cfs_quota_us``). None: all."""
    words = _words(cgroup / "cpu.max")
    if not words:
        words = [*_words(cgroup / "cpu/cpu.cfs_quota_us"), *_words(cgroup / "cpu/cpu.cfs_period_us")]
    if len(words) != 2 or not all(word.isdecimal() for word in words) or int(words[1]) == 0:
        return None
    return int(words[0]) / int(words[1])


def heap_bytes(cgroup: Path = _CGROUP) -> int | None:
    """How much of the control group's memory limit the proxy's heap may have, in bytes; None: there
    is no limit.

    The proxy sheds requests before it reaches this size. At the limit itself the kernel would kill
    it with all that is in flight.
    """
    words = _words(cgroup / "memory.max") or _words(cgroup / "memory/memory.limit_in_bytes")
    # Version 1 expresses "no limit" as a number larger than any memory.
    if len(words) != 1 or not words[0].isdecimal() or int(words[0]) >= 2**60:
        return None
    limit = int(words[0])
    return max(limit // 2, limit - _BESIDE_HEAP)


def _words(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return []
