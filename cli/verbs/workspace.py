"""``ml workspace``: the only workspace of a control plane, in the form that Azure's scripts expect.

Decides the options and the output. Must not know the resources of a workspace.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from amphitrite.cli.session.session import Session
from amphitrite.cli.session.verb_declaration import group, verb
from amphitrite.cli.terminal.options import Options

app = group("workspace", "The workspace of all resources.")

_COLUMNS = ("name", "resource_group", "location")


@verb(app, "show", columns=_COLUMNS)
def show(
    session: Session,
    name: Annotated[
        str | None, typer.Option("--name", "-n", help="Name of the workspace. Overrides --workspace-name.")
    ] = None,
) -> dict[str, Any]:
    """Show the workspace."""
    return _output(session.with_options(Options(workspace=name)) if name else session)


@verb(app, "list", columns=_COLUMNS)
def list_(session: Session) -> list[dict[str, Any]]:
    """List all workspaces. A control plane has one."""
    return [_output(session)]


def _output(session: Session) -> dict[str, Any]:
    client = session.client
    body = client.get(client.workspace)
    return {
        "id": body["id"],
        "name": body["name"],
        "display_name": body["properties"].get("friendlyName") or body["name"],
        "location": body["location"],
        "resource_group": body["id"].split("/")[4],
        "container_registry": body["properties"].get("containerRegistry"),
        "tags": body.get("tags") or {},
    }
