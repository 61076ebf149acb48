"""A model's configuration for an instance without a GPU.

Decides, purely, how a ``config.pbtxt`` with GPU groups becomes one that Triton loads there: each
such group is served on the CPU. Triton itself refuses it. Must not know files, instances or who
asks. The rest of the text stays as it is, line by line, so that Triton's messages name its lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from amphitrite.schemas.repository.config.lexer import Token, tokens
from amphitrite.schemas.repository.config.syntax_tree import Message, Position
from amphitrite.schemas.repository.config.text_format import parse
from amphitrite.schemas.repository.models.layout import CONFIG

_AUTO, _GPU = 0, 1
_TAB = 8


@dataclass(frozen=True, slots=True)
class CpuConfiguration:
    """``path``: of the file, relative to the model's files. ``line``: of its first GPU group."""

    path: str
    line: int
    text: str


def on_cpu(paths: Iterable[str], read_text: Callable[[str], str]) -> tuple[CpuConfiguration, ...]:
    """The configurations among ``paths`` that an instance without a GPU needs instead. A file that
    cannot be parsed stays as it is: Triton says what is wrong."""
    found = []
    for path in sorted(path for path in paths if PurePosixPath(path).name == CONFIG):
        text = read_text(path)
        config, findings = parse(text, path)
        groups = [group for group in config.children("instance_group") if _needs_gpu(group)]
        if groups and not findings:
            found.append(CpuConfiguration(path, _line(groups[0]), _rewritten(text, groups)))
    return tuple(found)


def note(configurations: Iterable[CpuConfiguration], why: str) -> str | None:
    """What a user should know of them; None for nothing. ``why``: such as "this machine has no
    GPU"."""
    places = ", ".join(f"{one.path}:{one.line}" for one in configurations)
    return f"{places}: KIND_GPU is served on the CPU, because {why}" if places else None


def _needs_gpu(group: Message) -> bool:
    return group.number("kind") == _GPU or (group.number("kind") == _AUTO and group.has("gpus"))


def _line(group: Message) -> int:
    values = group.all("kind") or group.all("gpus")
    return values[0].position.line


def _rewritten(text: str, groups: Iterable[Message]) -> str:
    lines = text.split("\n")
    every = list(tokens(text))
    at = {(token.line, token.column): index for index, token in enumerate(every)}

    def index_of(position: Position) -> int:
        return at[position.line, position.column]

    edits: dict[int, str] = {}
    for group in groups:
        edits |= {index_of(value.position): "KIND_CPU" for value in group.all("kind")}
        for key in {value.key_position for value in group.all("gpus")}:
            edits |= dict.fromkeys(_field(every, index_of(key)), "")
    # From the end, so that no place moves before its turn.
    for index in sorted(edits, reverse=True):
        _replace(lines, every[index], edits[index])
    return "\n".join(lines)


def _field(every: list[Token], first: int) -> range:
    """The indexes of a field with numbers: its name, its value or list, and a separator behind
    it."""
    end = first + 1
    if every[end].text == ":":
        end += 1
    if every[end].text == "[":
        while every[end].text != "]":
            end += 1
    end += 1
    if every[end].text in (",", ";"):
        end += 1
    return range(first, end)


def _replace(lines: list[str], token: Token, text: str) -> None:
    """Another text in place of a token; spaces keep the places of those behind it."""
    line, start, column = lines[token.line - 1], 0, 1
    while column < token.column:  # A tab advances to the next multiple of 8.
        column += _TAB - (column - 1) % _TAB if line[start] == "\t" else 1
        start += 1
    end = start + len(token.text)
    lines[token.line - 1] = line[:start] + text.ljust(len(token.text)) + line[end:]
