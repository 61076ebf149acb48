"""docs/reference/cli.md is what the commands say of themselves; every verb and option says
something."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from amphitrite.cli.session.program import Root, program

DOCS = Path(__file__).resolve().parents[2] / "docs"


def verbs() -> list[tuple[str, Any]]:
    root = program()
    groups = {name: root.get_command(None, name) for name in Root.groups}
    found = list(root.commands.items())
    for name, group in groups.items():
        below = getattr(group, "commands", None)
        found += [(name, group)] if below is None else _below(name, below)
    return found


def _below(group: str, commands: dict[str, Any]) -> list[tuple[str, Any]]:
    """The verbs of a group, and of the groups in it."""
    found: list[tuple[str, Any]] = []
    for name, command in commands.items():
        inner = getattr(command, "commands", None)
        found += [(f"{group} {name}", command)] if inner is None else _below(f"{group} {name}", inner)
    return found


def test_the_page_is_up_to_date() -> None:
    made = runpy.run_path(str(DOCS / "cli_reference.py"))["page"]()
    assert (DOCS / "reference" / "cli.md").read_text(encoding="utf-8") == made, "run: python docs/generate.py"


def test_every_verb_and_option_says_what_it_does() -> None:
    silent = [name for name, verb in verbs() if not (verb.help or "").strip()]
    silent += [
        f"{name} {option.opts[0]}"
        for name, verb in verbs()
        for option in verb.params
        if option.param_type_name == "option" and not (option.help or "").strip()
    ]
    assert silent == []
