"""``ml configure``: names that need not be given with every command.

Decides the options and what is printed. Must not know the file (``defaults``).
"""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from amphitrite.cli.session.session import Session
from amphitrite.cli.session.verb_declaration import group, verb
from amphitrite.schemas.errors import Error

app = group("configure", "Set the names that commands take where none is given.")


@verb(app, "configure", columns=("name", "value", "source"))
def configure(
    session: Session,
    defaults: Annotated[
        list[str] | None,
        typer.Option("--defaults", "-d", metavar="NAME=VALUE ...", help="group=G workspace=W; NAME= forgets it."),
    ] = None,
    list_defaults: Annotated[bool, typer.Option("--list-defaults", "-l", help="Print them.")] = False,
) -> list[dict[str, Any]] | None:
    """Set the names that commands take where none is given: group, workspace, subscription."""
    from amphitrite.cli.terminal import configured_defaults as kept

    if not defaults and not list_defaults:
        raise Error("UsageError", "nothing to do", hint="--defaults group=G workspace=W, or --list-defaults")
    changes = dict(_pair(word) for word in defaults or ())
    if changes:
        kept.change(changes)
    for name, value in changes.items():
        variable = kept.NAMES[name]
        if variable is None and value:
            session.note(f"{name}: kept, and without effect: there is one {name} here")
        elif variable is not None and os.environ.get(variable) not in (None, "", value):
            session.note(f"{name}: {variable} in the environment wins over it")
    if not list_defaults:
        return None
    return [{"name": name, "source": str(kept.path()), "value": value} for name, value in sorted(kept.read().items())]


def _pair(word: str) -> tuple[str, str]:
    from amphitrite.cli.terminal import configured_defaults as kept

    name, equals, value = word.partition("=")
    if not equals or name not in kept.NAMES:
        message = f"--defaults: `{word}` is not of the form name=value with one of the names {', '.join(kept.NAMES)}"
        raise Error("UsageError", message, target="--defaults")
    if any(character in value for character in "\r\n"):
        raise Error("UsageError", f"--defaults: {name} has a line break", target="--defaults")
    return name, value.strip()
