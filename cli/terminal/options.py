"""What every command accepts, before the verb or after it: whose resources, in which form, how talkative.

Decides the global options, their defaults and their precedence (after the verb, before it, environment,
``ml configure``, ``local``). Must not know any command.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any

import typer

#: az's output formats; ``none`` prints nothing.
FORMATS = ("json", "jsonc", "yaml", "yamlc", "table", "tsv", "none")


@dataclass(frozen=True, slots=True)
class Options:
    """The global options as given; None and False mean "not given here"."""

    resource_group: str | None = None
    workspace: str | None = None
    subscription: str | None = None
    output: str | None = None
    query: str | None = None
    debug: bool = False
    verbose: bool = False
    only_show_errors: bool = False
    server_url: str | None = None

    def over(self, outer: Options) -> Options:
        """These options, and ``outer``'s where nothing is given here."""
        return Options(**{f.name: getattr(self, f.name) or getattr(outer, f.name) for f in fields(self)})


def _panel(*names: str, help: str, **settings: Any) -> Any:
    return typer.Option(*names, help=help, show_default=False, **settings)


def _output(value: str | None) -> str | None:
    value = value.lower() if value is not None else None
    if value is not None and value not in FORMATS:
        raise typer.BadParameter(f"`{value}` is not one of {', '.join(FORMATS)}")
    return value


#: Field of Options -> the type that typer reads. Listed after a command's own options in its help.
DECLARATIONS: Mapping[str, Any] = {
    "resource_group": Annotated[
        str | None,
        _panel(
            "--resource-group", "-g", help="Resource group; see ml configure. [env: ML_RESOURCE_GROUP; default: local]"
        ),
    ],
    "workspace": Annotated[
        str | None,
        _panel("--workspace-name", "-w", help="Workspace; see ml configure. [env: ML_WORKSPACE; default: local]"),
    ],
    "subscription": Annotated[
        str | None,
        _panel("--subscription", help="Subscription; see ml configure. [env: ML_SUBSCRIPTION; default: local]"),
    ],
    "output": Annotated[
        str | None,
        _panel("--output", "-o", metavar="FORMAT", callback=_output, help=f"{'|'.join(FORMATS)} [default: json]"),
    ],
    "query": Annotated[
        str | None, _panel("--query", metavar="JMESPATH", help="Print only what this JMESPath expression selects.")
    ],
    "debug": Annotated[
        bool, _panel("--debug", help="Show requests, answers (secrets masked) and tracebacks on stderr.")
    ],
    "verbose": Annotated[bool, _panel("--verbose", help="Show one line for each request on stderr.")],
    "only_show_errors": Annotated[bool, _panel("--only-show-errors", help="No progress and no notes, only errors.")],
    "server_url": Annotated[
        str | None,
        _panel("--server-url", metavar="URL", help="Control plane. [env: ML_SERVER_URL; default: ML_HOME's]"),
    ],
}


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose resources: the three names that every address begins with."""

    subscription: str
    resource_group: str
    workspace: str


def scope(options: Options, environ: Mapping[str, str] = os.environ) -> Scope:
    """The scope of ``options``, else of the environment, else as configured, else ``local`` thrice.

    Raises Error LocalFileError for a configuration that cannot be read.
    """
    subscription = options.subscription or environ.get("ML_SUBSCRIPTION")
    resource_group = options.resource_group or environ.get("ML_RESOURCE_GROUP")
    workspace = options.workspace or environ.get("ML_WORKSPACE")
    if subscription and resource_group and workspace:
        return Scope(subscription, resource_group, workspace)
    from amphitrite.cli.terminal import configured_defaults

    configured = configured_defaults.read(environ)
    return Scope(
        subscription or configured.get("subscription") or "local",
        resource_group or configured.get("group") or "local",
        workspace or configured.get("workspace") or "local",
    )


# -- options that several verbs have ------------------------------------------------------------------------------
File = Annotated[str | None, typer.Option("--file", "-f", metavar="FILE", help="YAML document, or - for stdin.")]
RequiredFile = Annotated[str, typer.Option("--file", "-f", metavar="FILE", help="YAML document, or - for stdin.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE ...", help="Change fields of the document: --set a.b=1 c[0]=x"),
]
#: The generic update of resources that are there; ``edits.read`` takes what they hold.
Add = Annotated[
    list[str] | None,
    typer.Option("--add", metavar="PATH VALUE ...", help="Append to a list: --add list key=value, or --add list VALUE"),
]
Remove = Annotated[
    list[str] | None,
    typer.Option("--remove", metavar="PATH [INDEX]", help="Remove a field, or an entry of a list: --remove list 0"),
]
ForceString = Annotated[
    bool, typer.Option("--force-string", help="Values of --set and --add are text, whatever they look like.")
]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Return when the change is accepted.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def present(**values: Any) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in values.items() if value is not None}


def view(*, archived_only: bool, include_archived: bool) -> str:
    """The ``listViewType`` of a list of assets. Raises Error UsageError for both."""
    if archived_only and include_archived:
        from amphitrite.schemas.errors import Error

        raise Error("UsageError", "Cannot provide both archived-only and include-archived.")
    return "ArchivedOnly" if archived_only else "All" if include_archived else "ActiveOnly"
