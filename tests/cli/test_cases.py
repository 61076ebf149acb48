"""Command lines and what they print: each file of ``cases`` is a session of a user.

A file begins with text about it. ``$ ml ...`` is a command; below it stand the lines of stdout,
those of stderr after ``! ``, and ``? CODE`` when the exit code is not 0. ``...`` in a line stands
for any text, a line ``...`` for any lines. After the commands come the files of the user's
directory: ``-- name --`` and the content.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ..tiny_onnx import tiny
from .conftest import Stage

CASES = sorted((Path(__file__).parent / "cases").glob("*.txt"))
_FILE = re.compile(r"^-- (\S+) --$")


@dataclass
class Command:
    line: str
    out: list[str] = field(default_factory=list)
    err: list[str] = field(default_factory=list)
    code: int = 0


def parse(text: str) -> tuple[list[Command], dict[str, str]]:
    commands: list[Command] = []
    files: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in text.splitlines():
        if match := _FILE.match(line):
            current = files.setdefault(match[1], [])
        elif current is not None:
            current.append(line)
        elif line.startswith("$ "):
            commands.append(Command(line[2:]))
        elif not commands or not line:
            continue
        elif line.startswith("! "):
            commands[-1].err.append(line[2:])
        elif line.startswith("? "):
            commands[-1].code = int(line[2:])
        else:
            commands[-1].out.append(line)
    return commands, {name: "\n".join(lines) + "\n" for name, lines in files.items()}


def pattern(lines: list[str]) -> re.Pattern[str]:
    def translate() -> Iterator[str]:
        for line in lines:
            if line == "...":
                yield r"(?:.*\n)*"
            else:
                yield ".*".join(re.escape(part) for part in line.split("...")) + r"\n"

    return re.compile("".join(translate()))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path: Path, stage: Stage, request: pytest.FixtureRequest) -> None:
    text = path.read_text()
    commands, files = parse(text)
    assert commands, "a case without commands"
    for name, content in files.items():
        (stage.directory / name).parent.mkdir(parents=True, exist_ok=True)
        (stage.directory / name).write_bytes(tiny(content) if name.endswith("model.onnx") else content.encode())
    played = []
    for command in commands:
        program, *arguments = shlex.split(command.line)
        assert program == "ml"
        code, out, err = stage.run(*arguments)
        got = Command(command.line, _lines(out), _lines(err), code)
        same = code == command.code and matches(command.out, got.out) and matches(command.err, got.err)
        played.append(command if same else got)
    different = [got for got, command in zip(played, commands, strict=True) if got is not command]
    if different and request.config.getoption("--update-golden", default=False):
        prose, rest = text[: text.index("$ ")], text[text.index("\n-- ") :] if files else ""
        path.write_text(prose + "".join(map(render, played)) + rest)
    elif different:
        pytest.fail("printed instead:\n" + "".join(map(render, different)), pytrace=False)


def render(command: Command) -> str:
    """A command as it stands in a case."""
    code = [f"? {command.code}"] if command.code else []
    lines = [f"$ {command.line}", *command.out, *(f"! {line}" for line in command.err), *code]
    return "".join(f"{line}\n" for line in lines)


def matches(wanted: list[str], got: list[str]) -> bool:
    return pattern(wanted).fullmatch("".join(f"{line}\n" for line in got)) is not None


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]
