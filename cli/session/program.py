"""The command line for the parser: its groups, and the options before the first command.

Decides which groups there are and how the help describes them. Must not import any verb: a group is
imported when it is used.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import typer

from amphitrite.cli.session.session import Session
from amphitrite.cli.session.verb_declaration import LazyGroup, global_parameters, group, parameter, set_signature
from amphitrite.cli.terminal.options import Options


class Root(LazyGroup):
    """The groups. An empty summary hides an alias from the help."""

    groups: ClassVar[Mapping[str, tuple[str, str]]] = {
        "online-endpoint": ("endpoint", "Scoring addresses, their traffic and their keys (alias: endpoint)."),
        "online-deployment": ("deployment", "Models served behind an endpoint (alias: deployment)."),
        "model": ("model", "Immutable, numbered versions of model files."),
        "environment": ("environment", "Immutable, numbered versions of container images."),
        "compute": ("compute", "Kubernetes clusters on which instances run."),
        "workspace": ("workspace", "The workspace of all resources."),
        "monitor": ("autoscale.monitor", "Autoscale settings, with the commands of az monitor."),
        "server": ("server", "The control plane and data plane on this machine."),
        "apply": ("apply:apply", "Create or update the resources in YAML documents."),
        "diff": ("apply:diff", "Show the changes that ml apply would make."),
        "configure": ("configure", "Set the default workspace, resource group and subscription."),
        "config": ("config", "Read and write the defaults, like az config."),
        "account": ("account", "Show or set the default subscription, and get a token."),
        "group": ("resource_group", "The resource group of the workspace."),
        "explain": ("about:explain", "Explain an error code: what it means, and what to do."),
        "completion": ("completion", "Print a completion script for a shell."),
        "version": ("about:version", "Print the version."),
        "endpoint": ("endpoint", ""),
        "deployment": ("deployment", ""),
        **{name: (f"azure_elsewhere:{name}", "") for name in ("acr", "storage", "extension", "login")},
    }


_ABOUT = """\
Azure ML's managed online endpoints on your own machines.

The help of each command has examples. An error ends with its code: ml explain CODE.
"""


def release() -> str:
    """The version of the installed product."""
    from importlib.metadata import version

    return version("amphitrite")


def _print_version(value: bool) -> None:
    if value:
        sys.stdout.write(f"{release()}\n")
        raise typer.Exit


def program() -> Any:
    """The whole command line for the parser. A group is imported when it is used."""
    app = group("ml", _ABOUT, cls=Root)

    def root(context: typer.Context, **values: Any) -> None:
        values.pop("version")
        context.obj = Session(Options(**values), context.obj)

    option = typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    set_signature(root, [*global_parameters(), parameter("version", Annotated[bool, option], False)], None)
    app.callback()(root)
    return typer.main.get_command(app)
