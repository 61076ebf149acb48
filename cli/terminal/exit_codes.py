"""The exit code of each failure.

Decides the exit codes (docs/reference/cli.md). Must not know where errors come from, nor their text
(``schemas.error_text``).
"""

from __future__ import annotations

from amphitrite.schemas.errors import Error

FAILED, USAGE, NO_CONTROL_PLANE, INTERRUPTED = 1, 2, 3, 130

_CODES = {"UsageError": USAGE, "ServerUnreachable": NO_CONTROL_PLANE}


def exit_code(error: Error) -> int:
    """1: refused or failed, 2: wrong command line, 3: no control plane."""
    return _CODES.get(error.code, FAILED)
