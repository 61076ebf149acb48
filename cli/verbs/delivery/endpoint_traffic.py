"""``ml online-endpoint traffic``: history, undo and restore.

Decides the options and the output. Must not know how a history is stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from amphitrite.cli.session.session import Session
from amphitrite.cli.session.verb_declaration import group, verb
from amphitrite.cli.terminal import options

if TYPE_CHECKING:
    from amphitrite.cli.terminal.tables import Table

app = group("traffic", "Earlier traffic of an endpoint, and the way back to it.")

Name = Annotated[str, typer.Option("--name", "-n", help="Name of the endpoint.", show_default=False)]


def register(parent: typer.Typer) -> None:
    """Add the group to that of endpoints."""
    parent.add_typer(app, name="traffic")


def _table(session: Session, value: Any, name: str, **options: Any) -> Table:
    from amphitrite.cli.resources import histories

    return histories.traffic_table(session, value, name)


@verb(app, "history", table=_table)
def history(session: Session, name: Name) -> list[dict[str, Any]]:
    """Show each change of the traffic: when, by whom, from what, to what, and why; newest first."""
    from amphitrite.cli.resources import histories

    return histories.traffic(session.client, name)


@verb(app, "undo")
def undo(
    session: Session, name: Name, reason: options.Reason = None, no_wait: options.NoWait = False
) -> dict[str, Any] | None:
    """Bring back the traffic from before the last change. A second undo reverts the first."""
    return _restore(session, name, None, reason, no_wait)


@verb(app, "restore")
def restore(
    session: Session,
    name: Name,
    revision: Annotated[int, typer.Option("--revision", help="Number from the history.", show_default=False)],
    reason: options.Reason = None,
    no_wait: options.NoWait = False,
) -> dict[str, Any] | None:
    """Bring back the traffic of a revision. Everything else of the endpoint stays."""
    return _restore(session, name, revision, reason, no_wait)


def _restore(
    session: Session, name: str, revision: int | None, reason: str | None, no_wait: bool
) -> dict[str, Any] | None:
    from amphitrite.cli.resources import histories, lookups

    session.reason = reason or ""
    is_complete = histories.restore_traffic(session, name, revision, no_wait=no_wait)
    return lookups.endpoint(session.client, name) if is_complete else None
