"""An Error as people read it: the lines ``error:`` and ``hint:``.

Decides these words and where the code stands: in brackets at the end of the line ``error:``, so
that ``ml explain CODE`` can be asked about it. What is quoted cannot write on the terminal
elsewhere. Must not know where an error comes from or is shown.
"""

from __future__ import annotations

from amphitrite.schemas import printable_text
from amphitrite.schemas.errors import Error


def render(error: Error) -> str:
    """Each violation with its hint below; without violations, the message with its hint."""
    lines = []
    for violation in error.violations:
        lines.append(_line(str(violation), error.code))
        if violation.hint:
            lines.append(f"hint: {_indent(violation.hint)}")
    if not error.violations:
        lines.append(_line(error.message, error.code))
    # The hint of an error about a document repeats that of its first violation.
    if error.hint and not any(violation.hint for violation in error.violations):
        lines.append(f"hint: {_indent(error.hint)}")
    return "\n".join(lines) + "\n"


def _line(message: str, code: str) -> str:
    """The code ends the first line: further lines of a message are often quoted."""
    first, *rest = _indent(message).split("\n")
    return "\n".join([f"error: {first} [{code}]", *rest])


def _indent(text: str) -> str:
    """Indent all lines but the first, so that each ``error:`` stands out."""
    return printable_text.lines(text).strip().replace("\n", "\n  ")
