"""``ml account``: the default subscription, which Azure's scripts set first, and tokens.

Decides the options and the output. Must not know the file (``configured_defaults``) or how tokens
are made.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from amphitrite.cli.session.session import Session
from amphitrite.cli.session.verb_declaration import group, verb
from amphitrite.cli.terminal.options import scope

app = group("account", "Show or set the default subscription, and get a token.")

#: The resource of tokens for the control plane, for which Azure's clients ask.
_MANAGEMENT = "https://management.azure.com"


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


@verb(app, "get-access-token", columns=("tokenType", "expiresOn", "subscription"))
def get_access_token(
    session: Session,
    resource: Annotated[
        str | None,
        typer.Option(
            "--resource", help=f"Resource of the token. https://ml.azure.com: scoring only. [default: {_MANAGEMENT}]"
        ),
    ] = None,
    scope_: Annotated[
        str | None, typer.Option("--scope", help="The same as a scope, which ends with /.default.")
    ] = None,
) -> dict[str, Any]:
    """Get a bearer token for the REST API, or for scoring."""
    from datetime import datetime

    from amphitrite.schemas.errors import Error

    if resource and scope_:
        raise Error("UsageError", "--resource and --scope mean the same; use one of them", target="--scope")
    wanted = resource or (scope_ or _MANAGEMENT).removesuffix("/.default")
    answer = session.client.send("GET", "/identity/token", params={"resource": wanted.rstrip("/")}).json()
    expires_on = int(answer["expires_on"])
    return {
        "accessToken": answer["access_token"],
        "expiresOn": datetime.fromtimestamp(expires_on).strftime("%Y-%m-%d %H:%M:%S.%f"),
        "expires_on": expires_on,
        "subscription": scope(session.options).subscription,
        "tenant": "amphitrite",
        "tokenType": "Bearer",
    }
