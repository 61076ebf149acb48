"""``ml account``: the subscription, which Azure's scripts set before anything else.

Decides the options and what is printed. Must not know the file (``defaults``) or any server.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from amphitrite.cli.session.session import Session
from amphitrite.cli.session.verb_declaration import group, verb
from amphitrite.cli.terminal.options import scope

app = group("account", "The subscription that commands take where none is given.")


@verb(app, "show")
def show(session: Session) -> dict[str, Any]:
    """Show the subscription."""
    name = scope(session.options).subscription
    return {"id": name, "isDefault": True, "name": name, "state": "Enabled"}


@verb(app, "set")
def set_(
    session: Session,
    name: Annotated[str, typer.Option("--name", "-n", "-s", help="The subscription.", show_default=False)] = "",
) -> None:
    """Set the subscription, as ml configure --defaults subscription=NAME does."""
    from amphitrite.cli.terminal import configured_defaults
    from amphitrite.schemas.errors import Error

    wanted = name or session.options.subscription
    if not wanted:
        raise Error("UsageError", "which subscription?", hint="--subscription NAME")
    configured_defaults.change({"subscription": wanted})
