"""An Error as the user sees it: lines on stderr and an exit code.

Decides the words ``error:`` and ``hint:``, and the exit code of each failure
(docs/reference/cli.md). Must not know where errors come from.
"""

from __future__ import annotations

from amphitrite.schemas.errors import Error

FAILED, USAGE, NO_CONTROL_PLANE, INTERRUPTED = 1, 2, 3, 130

_CODES = {"UsageError": USAGE, "ServerUnreachable": NO_CONTROL_PLANE}


def exit_code(error: Error) -> int:
    """1: refused or failed, 2: wrong command line, 3: no control plane."""
    return _CODES.get(error.code, FAILED)


def render(error: Error) -> str:
    """Each violation with its hint below; without violations, the message with its hint."""
    lines = []
    for violation in error.violations:
        lines.append(f"error: {_indent(str(violation))}")
        if violation.hint:
            lines.append(f"hint: {_indent(violation.hint)}")
    if not error.violations:
        lines.append(f"error: {_indent(error.message)}")
    # The hint of an error about a document repeats that of its first violation.
    if error.hint and not any(violation.hint for violation in error.violations):
        lines.append(f"hint: {_indent(error.hint)}")
    return "\n".join(lines) + "\n"


def _indent(text: str) -> str:
    """Indent all lines but the first, so that each ``error:`` stands out."""
    return text.strip().replace("\n", "\n  ")
