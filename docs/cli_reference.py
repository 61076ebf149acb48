"""Writes docs/reference/cli.md from the commands themselves: what ``--help`` says, on one page.

Decides how a command reads as a table. Must not add facts: a sentence that is missing here is
missing in the command. ``docs/generate.py`` runs it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from amphitrite.cli.session import help_pages
from amphitrite.cli.session.program import Root, program
from amphitrite.cli.terminal.options import DECLARATIONS

PAGE = Path(__file__).parent / "reference" / "cli.md"
_HEAD = """\
# The command `ml`

This page is generated from the commands by `docs/generate.py`. [Coming from az ml](../az.md) lists
the differences from `az ml`.

A long option may be abbreviated as long as it is unambiguous: `--endpoint`, `--deployment`,
`--no-w`. Where an option takes several words (`...`), `--set a=1 b=2` is the same as
`--set a=1 --set b=2`. Data goes to stdout. Progress, notes and errors go to stderr.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | refused or failed |
| 2 | wrong usage |
| 3 | no control plane |

An error ends with its code in brackets: `ml explain CODE`, or [troubleshooting](../troubleshooting.md).
The examples are a session in `examples/single-model`, in the order of `cli/verbs/examples.sh`.

## Options of every command

These options stand before or after the verb.

"""


def page() -> str:
    """The whole page, in Markdown."""
    root = program()
    everywhere = [option for option in root.params if option.name in DECLARATIONS]
    parts = [_HEAD, _options(everywhere)]
    for names, command in _commands(root):
        parts += [f"\n## ml {names}\n\n", _first(command), "\n"]
        below = getattr(command, "commands", None)
        for name, verb in _verbs(below) if below is not None else [("", command)]:
            if _hidden(verb):
                continue
            group = names.split(",")[0]
            if below is not None:
                parts.append(f"\n### ml {group} {name}\n\n{_text(verb)}\n")
            own = [option for option in verb.params if option.name not in DECLARATIONS and not _hidden(option)]
            if own:
                parts += ["\n", _options(own)]
            parts.append(_examples(f"{group} {name}".rstrip()))
    return "".join(parts)


def _verbs(commands: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The verbs of a group, and those of the groups in it under both names."""
    for name, command in commands.items():
        inner = getattr(command, "commands", None)
        if inner is None:
            yield name, command
        else:
            yield from ((f"{name} {verb}", one) for verb, one in _verbs(inner))


def _examples(command: str) -> str:
    found = help_pages.examples_of(command)
    lines = [line for one in found for line in (f"# {one.about}", *one.lines)]
    return "\n```sh\n" + "\n".join(lines) + "\n```\n" if lines else ""


def _commands(root: Any) -> Iterator[tuple[str, Any]]:
    """(names, command): the groups in the order of the help, each once, then the verbs without a
    group."""
    aliases = {module: name for name, (module, summary) in Root.groups.items() if not summary}
    for name, (module, summary) in Root.groups.items():
        if summary:
            alias = aliases.get(module)
            yield f"{name}, ml {alias}" if alias else name, root.get_command(None, name)
    yield from root.commands.items()


def _options(options: list[Any]) -> str:
    rows = ["| option | meaning |", "|---|---|"]
    for option in options:
        rows.append(f"| {_spelled(option)} | {_cell(getattr(option, 'help', None) or '')}{_note(option)} |")
    return "\n".join(rows) + "\n"


def _spelled(option: Any) -> str:
    if option.param_type_name == "argument":
        return _cell(option.metavar or option.name.upper())
    spelled = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    kind = "" if option.is_flag else option.metavar or "VALUE"
    return f"{spelled} {_cell(kind)}".strip()


def _note(option: Any) -> str:
    if option.required:
        return " Required."
    shown = option.default is not None and option.default is not False and getattr(option, "show_default", False)
    return f" Default: `{option.default}`." if shown else ""


def _hidden(option: Any) -> bool:
    return bool(getattr(option, "hidden", False))


def _first(command: Any) -> str:
    return _text(command) if getattr(command, "commands", None) is None else _cell(command.help or "")


def _text(command: Any) -> str:
    return " ".join((command.help or "").split())


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
