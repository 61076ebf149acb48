"""``ml explain`` and ``ml version``: the codes of errors, and the installed release.

Decides the options and the output. Must not know any code (``schemas.explanations``), nor any
server.
"""

from __future__ import annotations

import shutil
import sys
from typing import Annotated, Any

import typer

from amphitrite.cli.session.program import release
from amphitrite.cli.session.session import Session

_WIDTH_MAX = 100


def explain(
    session: Session,
    code: Annotated[
        str | None,
        typer.Argument(
            metavar="[CODE]", help="Code of an error, or an HTTP status of a scoring request.", show_default=False
        ),
    ] = None,
) -> list[dict[str, Any]] | None:
    """Explain an error code: what it means, its causes, and what to do.

    Without a code it lists all codes.
    """
    from amphitrite.schemas.explanations import lookup

    found = lookup.EXPLANATIONS.values() if code is None else lookup.find(code)
    if session.options.output is not None or session.options.query is not None:
        return [one.to_document() for one in found]
    width = min(shutil.get_terminal_size().columns, _WIDTH_MAX)
    if code is None:
        sys.stdout.write("\n".join(lookup.index(width)) + "\n")
    else:
        sys.stdout.write("\n".join(lookup.text(one, width) for one in found))
    return None


def version(session: Session) -> dict[str, str]:
    """Print the version."""
    return {"amphitrite": release()}
