"""``ml version``: which release this is."""

from __future__ import annotations

from amphitrite.cli.session.program import release
from amphitrite.cli.session.session import Session


def version(session: Session) -> dict[str, str]:
    """Print the version."""
    return {"amphitrite": release()}
