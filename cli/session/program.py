"""The command line as the parser has it: its groups, and the options before the first word.

Decides which groups there are and what the help says of each. Must not import any verb: a group is imported when it is
used.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import typer

from amphitrite.cli.session.session import Session
from amphitrite.cli.session.verb_declaration import LazyGroup, declare, global_parameters, group, parameter
from amphitrite.cli.terminal.options import Options


class Root(LazyGroup):
    """The groups; an empty summary hides an alias from the list."""

    groups: ClassVar[Mapping[str, tuple[str, str]]] = {
        "online-endpoint": ("endpoint", "Scoring addresses, their traffic and keys (short: endpoint)."),
        "online-deployment": ("deployment", "Models that serve behind an endpoint (short: deployment)."),
        "model": ("model", "Immutable, numbered versions of model files."),
        "environment": ("environment", "Immutable, numbered versions of container images."),
        "compute": ("compute", "Kubernetes clusters on which instances run."),
        "workspace": ("workspace", "The workspace that everything lives in."),
        "server": ("server", "The control plane and data plane on this machine."),
        "apply": ("apply:apply", "Create or update what YAML documents say, in one or many files."),
        "diff": ("apply:diff", "Show what ml apply would do, field by field."),
        "configure": ("configure", "Set the names that commands take where none is given."),
        "account": ("account", "The subscription that commands take where none is given."),
        "completion": ("completion", "Print a script that completes commands in a shell."),
        "version": ("version:version", "Print the version."),
        "endpoint": ("endpoint", ""),
        "deployment": ("deployment", ""),
    }


def release() -> str:
    """The version of the installed product."""
    from importlib.metadata import version

    return version("amphitrite")


def _print_version(value: bool) -> None:
    if value:
        sys.stdout.write(f"{release()}\n")
        raise typer.Exit


def program() -> Any:
    """The whole command line, as the parser has it; its groups are imported when they are used."""
    app = group("ml", "Azure ML's managed online endpoints on your own machines.", cls=Root)

    def root(context: typer.Context, **values: Any) -> None:
        values.pop("version")
        context.obj = Session(Options(**values), context.obj)

    option = typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    declare(root, [*global_parameters(), parameter("version", Annotated[bool, option], False)], None)
    app.callback()(root)
    return typer.main.get_command(app)
