"""The help of commands: their own options, their examples, and the global options last.

Decides the order and the headings of a page, and that no summary is cut. Must not know any verb:
the examples are those of ``verbs/examples.sh`` that begin with the command.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from amphitrite.cli.terminal.options import DECLARATIONS

EXAMPLES = Path(__file__).parents[1] / "verbs" / "examples.sh"
#: Where a sentence ends.
_END = re.compile(r"(?<=[.!?])\s")


@dataclass(frozen=True, slots=True)
class Example:
    """``about``: what the command line does, in a sentence. ``lines``: as one types it."""

    about: str
    lines: tuple[str, ...]

    @property
    def command(self) -> str:
        """The lines as one."""
        return " ".join(line.removesuffix("\\").strip() for line in self.lines)

    def is_of(self, command: str) -> bool:
        """Whether it is an example of ``command``, such as ``online-endpoint create``."""
        return re.search(rf"(?:^|[\s(])ml {re.escape(command)}(?![\w-])", self.command) is not None


@cache
def examples() -> tuple[Example, ...]:
    """All examples in their order: that of a session in which each one works."""
    found: list[Example] = []
    # What stands before the first empty line is about the file.
    for block in EXAMPLES.read_text(encoding="utf-8").strip().split("\n\n")[1:]:
        lines = block.splitlines()
        about = [line.removeprefix("#").strip() for line in lines if line.startswith("#")]
        found.append(Example(" ".join(about), tuple(lines[len(about) :])))
    return tuple(found)


def examples_of(command: str) -> tuple[Example, ...]:
    """The examples of one command, in their order."""
    return tuple(example for example in examples() if example.is_of(command))


def summary(command: Any) -> str:
    """The first sentence of a command's help."""
    return _END.split(" ".join((command.help or "").split()), maxsplit=1)[0]


def write_command(command: Any, context: Any, formatter: Any) -> None:
    """A verb: arguments, its own options, examples, global options."""
    parameters = command.get_params(context)
    own = [one for one in parameters if one.name not in DECLARATIONS and one.name != "help"]
    _write(formatter, "Arguments", _rows([one for one in own if one.param_type_name == "argument"], context))
    _write(formatter, "Options", _rows([one for one in own if one.param_type_name == "option"], context))
    found = examples_of(_name(context))
    if found:
        with formatter.section("Examples"):
            for number, example in enumerate(found):
                formatter.write("" if number == 0 else "\n")
                formatter.write_text(example.about)
                formatter.write("".join(f"    {line}\n" for line in example.lines))
    # Their defaults are in the help of ``ml`` itself.
    rows = [(names, text.partition(" [")[0]) for names, text in _rows(_others(parameters), context)]
    _write(formatter, "Global options (defaults: ml --help)", rows)


def write_group(command: Any, context: Any, formatter: Any, rows: Sequence[tuple[str, str]]) -> None:
    """A group: ``rows`` of (command, summary), then the options."""
    _write(formatter, "Commands", rows)
    _write(formatter, "Options", _rows(command.get_params(context), context))


def _others(parameters: Iterable[Any]) -> list[Any]:
    return [one for one in parameters if one.name in DECLARATIONS or one.name == "help"]


def _name(context: Any) -> str:
    """``online-endpoint create``, by whichever alias of the group it was called."""
    names: list[str] = []
    while context.parent is not None:
        names.insert(0, context.command.name)
        context = context.parent
    return " ".join(names)


def _rows(parameters: Iterable[Any], context: Any) -> list[tuple[str, str]]:
    """(names, help) of those that are not hidden."""
    return [row for one in parameters if (row := one.get_help_record(context)) is not None]


def _write(formatter: Any, title: str, rows: Sequence[tuple[str, str]]) -> None:
    if rows:
        with formatter.section(title):
            formatter.write_dl(rows)
