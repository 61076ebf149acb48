"""``ml account``: the default subscription, which Azure's scripts set first.

Decides the options and the output. Must not know the file (``configured_defaults``) or any server.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from amphitrite.cli.session.session import Session
from amphitrite.cli.session.verb_declaration import group, verb
from amphitrite.cli.terminal.options import scope

app = group("account", "Show or set the default subscription.")


@verb(app, "show")
def show(session: Session) -> dict[str, Any]:
    """Show the subscription."""
    name = scope(session.options).subscription
    return {"id": name, "isDefault": True, "name": name, "state": "Enabled"}


@verb(app, "set")
def set_(
    session: Session,
    name: Annotated[str, typer.Option("--name", "-n", "-s", help="Name of the subscription.", show_default=False)] = "",
) -> None:
    """Set the default subscription, like ml configure --defaults subscription=NAME."""
    from amphitrite.cli.terminal import configured_defaults
    from amphitrite.schemas.errors import Error

    subscription = name or session.options.subscription
    if not subscription:
        raise Error("UsageError", "the name of the subscription is missing", hint="add --subscription NAME")
    configured_defaults.change({"subscription": subscription})
