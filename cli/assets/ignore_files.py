"""Which files of a directory are not uploaded: ``.amlignore``, else ``.gitignore``, as Azure ML's clients read them.

Decides the meaning of a pattern (gitignore's: the last one that matches decides; nothing below an ignored directory
comes back). Must not know what happens to the others.
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
    """One line. ``pattern`` matches a path relative to the directory; ``restores``: the line began with ``!``."""

    pattern: re.Pattern[str]
    restores: bool
    directories_only: bool


def read(directory: Path) -> tuple[Rule, ...]:
    """The rules of ``directory``: of the first of FILES that it has. Raises Error LocalFileError."""
    for name in FILES:
        file = directory / name
        if file.is_file():
            try:
                return parse(file.read_text(encoding="utf-8").splitlines())
            except (OSError, UnicodeDecodeError, re.error) as exc:
                raise Error("LocalFileError", f"cannot read {file}: {exc}") from exc
    return ()


def parse(lines: Iterable[str]) -> tuple[Rule, ...]:
    """The rules of the lines; empty ones and comments are none."""
    rules = []
    for raw in lines:
        line = raw if raw.endswith("\\ ") else raw.rstrip()
        if not line or line.startswith("#"):
            continue
        restores = line.startswith("!")
        text = line.removeprefix("!").removeprefix("\\")
        directories_only = text.endswith("/")
        text = text.rstrip("/")
        # A slash inside ties the pattern to the directory of the file; without one it holds at every depth.
        anchored = "/" in text
        expression = _translate(text.lstrip("/"))
        rules.append(Rule(re.compile(expression if anchored else f"(?:.*/)?{expression}"), restores, directories_only))
    return tuple(rules)


def is_ignored(rules: Iterable[Rule], path: str, *, directory: bool) -> bool:
    """Whether ``path`` (relative, with ``/``) is left out. The caller does not go into directories that are."""
    ignored = False
    for rule in rules:
        if (directory or not rule.directories_only) and rule.pattern.fullmatch(path):
            ignored = not rule.restores
    return ignored


def _translate(text: str) -> str:
    """gitignore's pattern as a regular expression: ``*`` and ``?`` stop at a slash, ``**`` does not."""
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
