"""The arguments of a command line, rewritten into a form that the parser accepts.

Decides how to read what az's parser accepts and ours does not:

- A unique prefix of a long option stands for the option.
- ``--set a=b c=d`` means ``--set a=b --set c=d``.
- Edits (``--set``, ``--add``, ``--remove``) keep their order, and each keeps its values together.

Must not know what options mean.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: Separates the values of one occurrence of an option. No argument of a process can contain it.
SEPARATOR = "\0"
_NUMBER = re.compile(r"-\.?\d")


@dataclass(frozen=True, slots=True)
class OptionTable:
    """The options of a command.

    ``owners``: each spelling of an option -> the option's name. ``takes_value`` and ``repeatable``:
    spellings of the options that take a value, or several.
    """

    owners: Mapping[str, str]
    takes_value: frozenset[str]
    repeatable: frozenset[str]

    @classmethod
    def of(cls, parameters: Iterable[Any]) -> OptionTable:
        """The options among a command's parameters, and ``--help``."""
        owners = {"--help": "help"}
        takes_value, repeatable = set(), set()
        for option in parameters:
            for spelling in (*option.opts, *option.secondary_opts):
                owners[spelling] = option.name
                if not getattr(option, "is_flag", False):
                    takes_value.add(spelling)
                if getattr(option, "multiple", False):
                    repeatable.add(spelling)
        return cls(owners, frozenset(takes_value), frozenset(repeatable))


def expand_abbreviations(args: Sequence[str], options: OptionTable, *, to_first_word: bool = False) -> list[str]:
    """``args`` with each abbreviated long option spelled out.

    ``to_first_word``: stop at the first argument that is not an option, because what follows a verb
    belongs to the verb. Raises ValueError for a prefix of several options; its message names them.
    """
    result: list[str] = []
    remaining = iter(args)
    for argument in remaining:
        if argument == "--" or (to_first_word and not argument.startswith("-")):
            return [*result, argument, *remaining]
        if argument.startswith("--"):
            name, equals, value = argument.partition("=")
            name = _full_name(name, options)
            result.append(name + equals + value)
            has_value = bool(equals)
        else:
            name, has_value = argument, False
            result.append(argument)
        if name in options.takes_value and not has_value:
            result.extend(value for value in [next(remaining, None)] if value is not None)
    return result


def _full_name(name: str, options: OptionTable) -> str:
    """The option with the prefix ``name``; without one ``name``, which the parser refuses."""
    if name in options.owners:
        return name
    matches = [spelling for spelling in options.owners if spelling.startswith(name)]
    if len({options.owners[spelling] for spelling in matches}) > 1:
        raise ValueError(f"ambiguous option: {name} could be {', '.join(sorted(matches))}")
    return matches[0] if matches else name


def repeat_options(args: Sequence[str], repeatable: Collection[str]) -> list[str]:
    """``--set a=b c=d`` -> ``--set a=b --set c=d``.

    Every argument up to the next option is a value of the repeatable option before it.
    """
    result: list[str] = []
    current: str | None = None
    has_value = False
    for argument in args:
        if argument.startswith("-"):
            name, equals, _ = argument.partition("=")
            current, has_value = (name if name in repeatable else None), bool(equals)
        elif current is not None:
            if has_value:
                result.append(current)
            has_value = True
        result.append(argument)
    return result


def join_edit_values(args: Sequence[str], edits: Collection[str]) -> list[str]:
    """Join the values of each occurrence of one of ``edits`` into one, with its position in front.

    ``--set a=1 --add b c`` -> ``--set "0|a=1" --add "1|b|c"``, where ``|`` stands for the
    separator. An occurrence without a value is left as it is, so that the parser refuses it.
    """
    result: list[str] = []
    in_edit = False
    count = 0
    for argument in args:
        name, equals, value = argument.partition("=")
        if name in edits:
            result.append(name)
            in_edit = True
            if equals:
                result.append(f"{count}{SEPARATOR}{value}")
                count += 1
        elif argument.startswith("-") and not _NUMBER.match(argument):
            in_edit = False
            result.append(argument)
        elif in_edit and result[-1] in edits:
            result.append(f"{count}{SEPARATOR}{argument}")
            count += 1
        elif in_edit:
            result[-1] += SEPARATOR + argument
        else:
            result.append(argument)
    return result
