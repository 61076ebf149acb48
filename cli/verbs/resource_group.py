"""``ml group``: the resource group of the workspace, which Azure's scripts ask for its location.

Decides the options and the output, which is Azure Resource Manager's. Must not know what a
workspace contains.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from amphitrite.cli.session.session import Session
from amphitrite.cli.session.verb_declaration import group, verb
from amphitrite.cli.terminal.options import Options

app = group("group", "The resource group of the workspace.")

_COLUMNS = ("name", "location")


@verb(app, "show", columns=_COLUMNS)
def show(
    session: Session,
    name: Annotated[
        str | None, typer.Option("--name", "-n", help="Name of the group. Overrides --resource-group.")
    ] = None,
) -> dict[str, Any]:
    """Show the resource group, with the location of its only workspace."""
    return _output(session.with_options(Options(resource_group=name)) if name else session)


@verb(app, "list", columns=_COLUMNS)
def list_(session: Session) -> list[dict[str, Any]]:
    """List all resource groups. A control plane has one."""
    return [_output(session)]


def _output(session: Session) -> dict[str, Any]:
    client = session.client
    workspace = client.get(client.workspace)
    arm_id = workspace["id"].partition("/providers/")[0]
    return {
        "id": arm_id,
        "location": workspace["location"],
        "managedBy": None,
        "name": arm_id.rpartition("/")[2],
        "properties": {"provisioningState": "Succeeded"},
        "tags": {},
        "type": "Microsoft.Resources/resourceGroups",
    }
