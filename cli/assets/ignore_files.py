"""The files that are not uploaded: ``.amlignore``, else ``.gitignore``, as in Azure ML's clients.

Decides the meaning of a pattern. Must not know what happens to the other files. Outside contract:
gitignore(5). The last pattern that matches decides, and a file below an ignored directory cannot be
included again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from amphitrite.schemas.errors import Error

FILES = (".amlignore", ".gitignore")


@dataclass(frozen=True, slots=True)
class Rule:
    """One line.

    ``pattern``: matches a path relative to the directory. ``restores``: the line begins with ``!``.
    """

    pattern: re.Pattern[str]
    restores: bool
    directories_only: bool


def read(directory: Path) -> tuple[Rule, ...]:
    """The rules in the first of FILES that ``directory`` has. Raises Error LocalFileError."""
    for name in FILES:
        file = directory / name
        if file.is_file():
            try:
                return parse(file.read_text(encoding="utf-8").splitlines())
            except (OSError, UnicodeDecodeError, re.error) as exc:
                raise Error("LocalFileError", f"cannot read {file}: {exc}") from exc
    return ()


def parse(lines: Iterable[str]) -> tuple[Rule, ...]:
    """The rules of the lines, without empty lines and comments."""
    rules = []
    for raw in lines:
        line = raw if raw.endswith("\\ ") else raw.rstrip()
        if not line or line.startswith("#"):
            continue
        restores = line.startswith("!")
        text = line.removeprefix("!").removeprefix("\\")
        directories_only = text.endswith("/")
        text = text.rstrip("/")
        # A pattern with a slash inside is relative to the directory; another one applies at every
        # depth.
        anchored = "/" in text
        expression = _translate(text.lstrip("/"))
        rules.append(Rule(re.compile(expression if anchored else f"(?:.*/)?{expression}"), restores, directories_only))
    return tuple(rules)


def is_ignored(rules: Iterable[Rule], path: str, *, directory: bool) -> bool:
    """Whether ``path`` (relative, with ``/``) is ignored.

    The caller does not enter ignored directories.
    """
    ignored = False
    for rule in rules:
        if (directory or not rule.directories_only) and rule.pattern.fullmatch(path):
            ignored = not rule.restores
    return ignored


def _translate(text: str) -> str:
    """A gitignore pattern as a regular expression. Only ``**`` matches a slash."""
    out, i = "", 0
    while i < len(text):
        if text.startswith("**/", i):
            out, i = out + "(?:.*/)?", i + 3
        elif text.startswith("**", i):
            out, i = out + ".*", i + 2
        elif text[i] == "*":
            out, i = out + "[^/]*", i + 1
        elif text[i] == "?":
            out, i = out + "[^/]", i + 1
        elif text[i] == "[" and (end := text.find("]", i + 2)) > 0:
            inside = text[i + 1 : end].replace("\\", "\\\\")
            out, i = out + f"[{'^' + inside[1:] if inside[0] in '!^' else inside}]", end + 1
        elif text[i] == "\\" and i + 1 < len(text):
            out, i = out + re.escape(text[i + 1]), i + 2
        else:
            out, i = out + re.escape(text[i]), i + 1
    return out
