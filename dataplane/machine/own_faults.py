"""Which errors of the operating system are faults of this process, and not of whom it asked.

Decides it by the error number. A question that failed for such a reason says nothing about the one
who was asked. Must not know who asks whom.
"""

from __future__ import annotations

import errno

#: No descriptor, no memory, no free port of ours, or no permission.
_NUMBERS = frozenset(
    {
        *(errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS),
        *(errno.EADDRNOTAVAIL, errno.EACCES, errno.EPERM),
    }
)


def is_own(error: BaseException) -> bool:
    """Whether ``error`` is a fault of this process."""
    return isinstance(error, OSError) and error.errno in _NUMBERS
