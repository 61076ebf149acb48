"""The options of every command: workspace, output format, verbosity.

Decides the global options, their defaults and their precedence: after the verb, before the verb,
environment, ``ml configure``, ``local``. Must not know any command.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any

import typer

#: az's output formats, and kubectl's ``wide``: a table with more columns. ``none`` prints nothing.
FORMATS = ("json", "jsonc", "yaml", "yamlc", "table", "wide", "tsv", "none")


@dataclass(frozen=True, slots=True)
class Options:
    """The global options of one place on the command line; None and False: not set there."""

    resource_group: str | None = None
    workspace: str | None = None
    subscription: str | None = None
    output: str | None = None
    query: str | None = None
    debug: bool = False
    verbose: bool = False
    only_show_errors: bool = False
    server_url: str | None = None

    def merged_with(self, outer: Options) -> Options:
        """These options; where one is not set, that of ``outer``."""
        return Options(**{f.name: getattr(self, f.name) or getattr(outer, f.name) for f in fields(self)})


def _global_option(*names: str, help: str, **settings: Any) -> Any:
    return typer.Option(*names, help=help, show_default=False, **settings)


def _output(value: str | None) -> str | None:
    value = value.lower() if value is not None else None
    if value is not None and value not in FORMATS:
        raise typer.BadParameter(f"found `{value}`; allowed: {', '.join(FORMATS)}")
    return value


#: Field of Options -> the type that typer reads. The help lists them after a command's own options.
DECLARATIONS: Mapping[str, Any] = {
    "resource_group": Annotated[
        str | None,
        _global_option(
            "--resource-group",
            "-g",
            metavar="NAME",
            help="Resource group. [env: ML_RESOURCE_GROUP; then ml configure; default: local]",
        ),
    ],
    "workspace": Annotated[
        str | None,
        _global_option(
            "--workspace-name",
            "-w",
            metavar="NAME",
            help="Workspace. [env: ML_WORKSPACE; then ml configure; default: local]",
        ),
    ],
    "subscription": Annotated[
        str | None,
        _global_option(
            "--subscription",
            metavar="NAME",
            help="Subscription. [env: ML_SUBSCRIPTION; then ml configure; default: local]",
        ),
    ],
    "output": Annotated[
        str | None,
        _global_option(
            "--output",
            "-o",
            metavar="FORMAT",
            callback=_output,
            help=f"Output format: {', '.join(FORMATS)}. [default: json]",
        ),
    ],
    "query": Annotated[
        str | None,
        _global_option("--query", metavar="JMESPATH", help="Print only the result of this JMESPath expression."),
    ],
    "debug": Annotated[
        bool, _global_option("--debug", help="Print requests, responses and tracebacks to stderr. Secrets are masked.")
    ],
    "verbose": Annotated[bool, _global_option("--verbose", help="Print one line for each request to stderr.")],
    "only_show_errors": Annotated[
        bool, _global_option("--only-show-errors", help="Print only errors to stderr, no progress and no notes.")
    ],
    "server_url": Annotated[
        str | None,
        _global_option(
            "--server-url",
            metavar="URL",
            help="Address of the control plane. [env: ML_SERVER_URL; default: the one of ML_HOME]",
        ),
    ],
}


@dataclass(frozen=True, slots=True)
class Scope:
    """The workspace of a command: the three names with which every ARM id begins."""

    subscription: str
    resource_group: str
    workspace: str


def scope(options: Options, environ: Mapping[str, str] = os.environ) -> Scope:
    """The names from ``options``, the environment or the configuration; the default is ``local``.

    Raises Error LocalFileError if the configuration cannot be read.
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


# -- options of several verbs ----------------------------------------------------------------------
File = Annotated[str | None, typer.Option("--file", "-f", metavar="FILE", help="YAML document; - for stdin.")]
RequiredFile = Annotated[str, typer.Option("--file", "-f", metavar="FILE", help="YAML document; - for stdin.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE ...", help="Set fields of the document, for example --set a.b=1 c[0]=x."),
]
#: The generic update of existing resources; ``edits`` reads their values.
Add = Annotated[
    list[str] | None,
    typer.Option(
        "--add", metavar="PATH VALUE ...", help="Append to a list: --add LIST KEY=VALUE, or --add LIST VALUE."
    ),
]
Remove = Annotated[
    list[str] | None,
    typer.Option("--remove", metavar="PATH [INDEX]", help="Remove a field, or an entry of a list: --remove LIST 0."),
]
ForceString = Annotated[bool, typer.Option("--force-string", help="Treat all values of --set and --add as text.")]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="AGE", help="Only lines of the last 30s, 10m, 2h, 1d or the like."),
]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Return as soon as the server has accepted the change.")]
Reason = Annotated[
    str | None, typer.Option("--reason", metavar="TEXT", help="Why. The history of the resource shows it.")
]
IgnoreNotFound = Annotated[bool, typer.Option("--ignore-not-found", help="Succeed if there is nothing to delete.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


def set_options(**values: Any) -> dict[str, Any]:
    """The options that are set."""
    return {name: value for name, value in values.items() if value is not None}


def list_view_type(*, archived_only: bool, include_archived: bool) -> str:
    """The ``listViewType`` of a list of assets. Raises Error UsageError if both options are set."""
    if archived_only and include_archived:
        from amphitrite.schemas.errors import Error

        raise Error("UsageError", "Cannot provide both archived-only and include-archived.")
    return "ArchivedOnly" if archived_only else "All" if include_archived else "ActiveOnly"
