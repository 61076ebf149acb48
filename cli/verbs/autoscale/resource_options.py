"""The options by which verbs of autoscale settings name a resource.

Decides their spelling, which is that of ``az``. Must not know ids.
"""

from __future__ import annotations

from typing import Annotated

import typer

Resource = Annotated[
    str,
    typer.Option(
        "--resource",
        metavar="ID",
        help="ID of the deployment, or ENDPOINT/DEPLOYMENT, or a name with --resource-type.",
        show_default=False,
    ),
]
Source = Annotated[
    str | None,
    typer.Option(
        "--resource",
        metavar="ID",
        help="ID of the endpoint or deployment whose metric it is, or its name. [default: what is scaled]",
    ),
]
ResourceType = Annotated[
    str | None, typer.Option("--resource-type", help="Type of the resource, if --resource is a name.")
]
Parent = Annotated[str | None, typer.Option("--resource-parent", help="Path of what the resource belongs to.")]
Namespace = Annotated[str | None, typer.Option("--resource-namespace", help="Provider of the resource.")]
Setting = Annotated[str, typer.Option("--autoscale-name", help="Name of the setting.", show_default=False)]
