"""The words of a command line, rewritten into what the parser understands.

Decides what az's parser accepts and ours does not: a unique beginning of a long option stands for it; ``--set a=b c=d``
means ``--set a=b --set c=d``; and edits (``--set``, ``--add``, ``--remove``) keep their order and their words together.
Must not know what options mean.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: Between the words of one occurrence of an option; no word of a command line has it.
DIVIDER = "\0"
_NUMBER = re.compile(r"-\.?\d")


@dataclass(frozen=True, slots=True)
class Options:
    """``owners``: each spelling of an option -> the option's name. ``takes_value``, ``repeatable``: spellings."""

    owners: Mapping[str, str]
    takes_value: frozenset[str]
    repeatable: frozenset[str]

    @classmethod
    def of(cls, parameters: Iterable[Any]) -> Options:
        """The options among a command's parameters, ``--help`` too."""
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
    """``args`` with each abbreviated long option spelled out. ``to_first_word``: what follows a verb is the verb's.

    Raises ValueError for a beginning of several options, which names them.
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
    """The option that begins with ``name``; ``name`` itself where none does: the parser refuses it."""
    if name in options.owners:
        return name
    found = [spelling for spelling in options.owners if spelling.startswith(name)]
    if len({options.owners[spelling] for spelling in found}) > 1:
        raise ValueError(f"ambiguous option: {name} could be {', '.join(sorted(found))}")
    return found[0] if found else name


def spread(args: Sequence[str], repeatable: Collection[str]) -> list[str]:
    """``--set a=b c=d`` -> ``--set a=b --set c=d``: every word up to the next option is a value of a repeatable one."""
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
    """Each occurrence of one of ``edits`` gets one value: which of them it is, and its words, with ``DIVIDER`` between.

    ``--set a=1 --add b c`` -> ``--set "0|a=1" --add "1|b|c"``. Without a word it is left for the parser to refuse.
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
