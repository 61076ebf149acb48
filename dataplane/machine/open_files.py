"""How many files and connections this process, and those that it starts, may have open.

Decides the soft limit. Must not know what is opened. Linux gives a process 1,024 by default, for
programs that use select(2), which none of ours does. The hard limit is the administrator's.
"""

from __future__ import annotations

import resource

#: Enough for thousands of connections, and few enough for a program that closes all possible
#: descriptors when it starts.
WANTED = 65_536


def raise_limit(most: int = WANTED) -> int:
    """Raises the soft limit to ``most``, or to the hard limit if that is lower. Returns the soft
    limit then. Processes that are started later inherit it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most if hard == resource.RLIM_INFINITY else min(most, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return most if soft == resource.RLIM_INFINITY else soft
