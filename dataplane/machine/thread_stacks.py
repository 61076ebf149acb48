"""How large the stacks of threads are in the processes that this one starts.

Decides the soft limit, which the C library takes for the size of each thread's stack when a program
starts. Must not know what runs there. ``unlimited`` would mean two megabytes. Source:
pthread_create(3).
"""

from __future__ import annotations

import resource

#: Twice Linux's default, where it was not made smaller. A stack takes memory only as it is used.
WANTED_BYTES = 16 * 1024 * 1024


def raise_limit(least: int = WANTED_BYTES) -> int:
    """Raises the soft limit to ``least`` bytes, or to the hard limit if that is lower. A larger
    finite one stays. Returns the soft limit then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    wanted = least if hard == resource.RLIM_INFINITY else min(least, hard)
    if soft == resource.RLIM_INFINITY or soft < wanted:
        resource.setrlimit(resource.RLIMIT_STACK, (wanted, hard))
        return wanted
    return soft
