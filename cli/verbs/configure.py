"""``ml configure``: default names for all commands.

Decides the options and the output. Must not know the file (``configured_defaults``).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from amphitrite.cli.session.session import Session
from amphitrite.cli.session.verb_declaration import group, verb
from amphitrite.schemas.errors import Error

app = group("configure", "Set the default workspace, resource group and subscription.")


@verb(app, "configure", columns=("name", "value", "source"))
def configure(
    session: Session,
    defaults: Annotated[
        list[str] | None,
        typer.Option(
            "--defaults",
            "-d",
            metavar="NAME=VALUE ...",
            help="For example group=G workspace=W. NAME= removes a default.",
        ),
    ] = None,
    list_defaults: Annotated[bool, typer.Option("--list-defaults", "-l", help="Print the defaults.")] = False,
) -> list[dict[str, Any]] | None:
    """Set the defaults of commands: group, workspace, subscription."""
    from amphitrite.cli.terminal import configured_defaults as configured_defaults

    if not defaults and not list_defaults:
        raise Error("UsageError", "no option is set", hint="add --defaults group=G workspace=W, or --list-defaults")
    set_defaults(session, defaults or ())
    if not list_defaults:
        return None
    return [
        {"name": name, "source": str(configured_defaults.path()), "value": value}
        for name, value in sorted(configured_defaults.read().items())
    ]


def set_defaults(session: Session, pairs: Sequence[str]) -> None:
    """Store defaults, each NAME=VALUE. Raises Error UsageError."""
    from amphitrite.cli.terminal import configured_defaults as configured_defaults

    changes = dict(_pair(word) for word in pairs)
    if changes:
        configured_defaults.change(changes)
    for name, value in changes.items():
        variable = configured_defaults.NAMES[name]
        if variable is None and value:
            session.note(f"{name}: stored, but without effect; there is only one {name}")
        elif variable is not None and os.environ.get(variable) not in (None, "", value):
            session.note(f"{name}: the environment variable {variable} takes precedence")


def _pair(word: str) -> tuple[str, str]:
    from amphitrite.cli.terminal import configured_defaults as configured_defaults

    name, equals, value = word.partition("=")
    if not equals or name not in configured_defaults.NAMES:
        message = (
            f"--defaults: found `{word}`; allowed: NAME=VALUE with the names {', '.join(configured_defaults.NAMES)}"
        )
        raise Error("UsageError", message, target="--defaults")
    if any(character in value for character in "\r\n"):
        raise Error("UsageError", f"--defaults: the value of {name} must not contain a line break", target="--defaults")
    return name, value.strip()
