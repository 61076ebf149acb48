"""``ml config``: the defaults of ``ml configure``, by the names that ``az config`` gives them.

Decides the options and the output, and that other sections have no effect. Must not know the file
(``configured_defaults``).
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from amphitrite.cli.session.session import Session
from amphitrite.cli.session.verb_declaration import group, verb
from amphitrite.schemas.errors import Error

app = group("config", "Read and write the defaults, like az config.")

_SECTION = "defaults"
Names = Annotated[list[str], typer.Argument(metavar="defaults.NAME ...", help="Names of defaults.")]


@verb(app, "get", columns=("name", "value", "source"))
def get(
    session: Session,
    name: Annotated[
        str | None, typer.Argument(metavar="[defaults[.NAME]]", help="A section, or one name in it.")
    ] = None,
) -> Any:
    """Print the defaults, or one of them."""
    from amphitrite.cli.terminal import configured_defaults

    source = str(configured_defaults.path())
    entries = [
        {"name": entry, "source": source, "value": value} for entry, value in sorted(configured_defaults.read().items())
    ]
    section, dot, wanted = (name or "").partition(".")
    if not section:
        return {_SECTION: entries}
    if section == _SECTION and not dot:
        return entries
    for entry in entries:
        if section == _SECTION and entry["name"] == wanted:
            return entry
    raise Error("ResourceNotFound", f"{name} is not set", target=name, hint="ml config set defaults.NAME=VALUE")


@verb(app, "set")
def set_(
    session: Session,
    pairs: Annotated[list[str], typer.Argument(metavar="defaults.NAME=VALUE ...", help="Defaults to set.")],
) -> None:
    """Set defaults, like ml configure --defaults NAME=VALUE."""
    _change(session, pairs)


@verb(app, "unset")
def unset(session: Session, names: Names) -> None:
    """Remove defaults, like ml configure --defaults NAME=."""
    _change(session, [f"{name}=" for name in names])


def _change(session: Session, pairs: list[str]) -> None:
    from amphitrite.cli.verbs import configure

    ours = [pair.partition(".")[2] for pair in pairs if pair.startswith(f"{_SECTION}.")]
    if ours:
        configure.set_defaults(session, ours)
    for pair in pairs:
        if not pair.startswith(f"{_SECTION}."):
            session.note(f"note: {pair.partition('=')[0]} has no effect here, and is not stored")
