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
DIVIDER = "\0"
_NUMBER = re.compile(r"-\.?\d")


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a command.

    ``owners``: each spelling of an option -> the option's name. ``takes_value`` and ``repeatable``:
    spellings of the options that take a value, or several.
    """

    owners: Mapping[str, str]
    takes_value: frozenset[str]
    repeatable: frozenset[str]

    @classmethod
    def of(cls, parameters: Iterable[Any]) -> Options:
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


def expanded(args: Sequence[str], options: Options, *, to_first_word: bool = False) -> list[str]:
    """``args`` with each abbreviated long option spelled out.

    ``to_first_word``: stop at the first argument that is not an option, because what follows a verb
    belongs to the verb. Raises ValueError for a prefix of several options; its message names them.
    """
    written: list[str] = []
    words = iter(args)
    for word in words:
        if word == "--" or (to_first_word and not word.startswith("-")):
            return [*written, word, *words]
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            name = _full(name, options)
            written.append(name + equals + value)
            has_value = bool(equals)
        else:
            name, has_value = word, False
            written.append(word)
        if name in options.takes_value and not has_value:
            written.extend(value for value in [next(words, None)] if value is not None)
    return written


def _full(name: str, options: Options) -> str:
    """The option with the prefix ``name``; ``name`` itself if there is none, so that the parser
    refuses it.
    """
    if name in options.owners:
        return name
    found = [spelling for spelling in options.owners if spelling.startswith(name)]
    if len({options.owners[spelling] for spelling in found}) > 1:
        raise ValueError(f"ambiguous option: {name} could be {', '.join(sorted(found))}")
    return found[0] if found else name


def spread(args: Sequence[str], repeatable: Collection[str]) -> list[str]:
    """``--set a=b c=d`` -> ``--set a=b --set c=d``.

    Every argument up to the next option is a value of the repeatable option before it.
    """
    spelled: list[str] = []
    current: str | None = None
    has_value = False
    for word in args:
        if word.startswith("-"):
            name, equals, _ = word.partition("=")
            current, has_value = (name if name in repeatable else None), bool(equals)
        elif current is not None:
            if has_value:
                spelled.append(current)
            has_value = True
        spelled.append(word)
    return spelled


def grouped(args: Sequence[str], edits: Collection[str]) -> list[str]:
    """Join the values of each occurrence of one of ``edits`` into one, with its position in front.

    ``--set a=1 --add b c`` -> ``--set "0|a=1" --add "1|b|c"``, where ``|`` stands for the
    separator. An occurrence without a value is left as it is, so that the parser refuses it.
    """
    written: list[str] = []
    open_ = False
    count = 0
    for word in args:
        name, equals, value = word.partition("=")
        if name in edits:
            written.append(name)
            open_ = True
            if equals:
                written.append(f"{count}{DIVIDER}{value}")
                count += 1
        elif word.startswith("-") and not _NUMBER.match(word):
            open_ = False
            written.append(word)
        elif open_ and written[-1] in edits:
            written.append(f"{count}{DIVIDER}{word}")
            count += 1
        elif open_:
            written[-1] += DIVIDER + word
        else:
            written.append(word)
    return written
