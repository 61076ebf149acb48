"""``ml online-deployment history``, ``rollback`` and ``scale-history``.

Decides the options and the output. Must not know how a history is stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from amphitrite.cli.session.session import Session
from amphitrite.cli.session.verb_declaration import verb
from amphitrite.cli.terminal import options

if TYPE_CHECKING:
    from amphitrite.cli.terminal.tables import Table

Name = Annotated[str, typer.Option("--name", "-n", help="Name of the deployment.", show_default=False)]
Endpoint = Annotated[
    str, typer.Option("--endpoint-name", "--endpoint", "-e", help="Name of its endpoint.", show_default=False)
]


def register(app: typer.Typer) -> None:
    """Add the verbs to the group of deployments."""
    verb(app, "history", table=_table)(history)
    verb(app, "rollback")(rollback)
    verb(app, "scale-history", table=_scale_table)(scale_history)


def _table(session: Session, value: Any, name: str, endpoint_name: str, **options: Any) -> Table:
    from amphitrite.cli.resources import histories

    return histories.deployment_table(session, value, f"{endpoint_name}/{name}")


def history(session: Session, name: Name, endpoint_name: Endpoint) -> list[dict[str, Any]]:
    """Show the last documents of a deployment: when, by whom, and which fields changed."""
    from amphitrite.cli.resources import histories

    return histories.deployment(session.client, endpoint_name, name)


def _scale_table(session: Session, value: Any, name: str, endpoint_name: str, **options: Any) -> Table:
    from amphitrite.cli.resources import histories

    return histories.scale_table(session, value, f"{endpoint_name}/{name}")


def scale_history(session: Session, name: Name, endpoint_name: Endpoint) -> list[dict[str, Any]]:
    """Show what has changed the number of instances: when, from, to, by what, and why."""
    from amphitrite.cli.resources import histories

    return histories.scale(session.client, endpoint_name, name)


def rollback(
    session: Session,
    name: Name,
    endpoint_name: Endpoint,
    revision: Annotated[
        int | None,
        typer.Option("--revision", help="Number from the history. [default: the last one that differs]"),
    ] = None,
    reason: options.Reason = None,
    no_wait: options.NoWait = False,
) -> dict[str, Any] | None:
    """Bring back model and settings of an earlier revision. The number of instances stays."""
    from amphitrite.cli.resources import histories, lookups

    session.reason = reason or ""
    is_complete = histories.roll_back(session, endpoint_name, name, revision, no_wait=no_wait)
    return lookups.deployment(session.client, endpoint_name, name) if is_complete else None
