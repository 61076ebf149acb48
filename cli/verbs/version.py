"""``ml version``: the installed release.

Decides only the output. Must not know any server.
"""

from __future__ import annotations

from amphitrite.cli.session.program import release
from amphitrite.cli.session.session import Session


def version(session: Session) -> dict[str, str]:
    """Print the version."""
    return {"amphitrite": release()}
