"""The commands that documents and hints name are there: each verb, and each option of it.

``ml`` is asked what it understands; nothing is run. The README's quick start and the examples of
the help are run elsewhere.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from amphitrite.cli.session.program import program
from amphitrite.cli.terminal.arguments import OptionTable

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("cli", "controlplane", "dataplane", "schemas")
DOCUMENTS = sorted(
    path
    for folder in (".", "bench", "deploy", "docs", "examples")
    for path in (ROOT.glob("*.md") if folder == "." else (ROOT / folder).rglob("*.md"))
    # A changelog names commands of its time; the reference is made from the commands.
    if path.name != "CHANGELOG.md" and path != ROOT / "docs" / "reference" / "cli.md"
)
_FENCE = re.compile(r"^```(?:sh|console|bash)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`(ml [a-z][^`]*)`")
#: A command in a line of a shell: at its begin, or where another one has ended.
_IN_LINE = re.compile(r"(?:^\$? *|[(;|&] *|=\$\()(ml [a-z][^|;&>)\n]*)", re.MULTILINE)
_EXTRAS = re.compile(r"\.\[([a-z,]+)\]")
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
_MAKE = re.compile(r"`make ([a-z]+)[^`]*`|^make ([a-z]+)", re.MULTILINE)


def commands(text: str) -> Iterator[str]:
    """The commands in a Markdown text."""
    for block in _FENCE.findall(text):
        yield from (match.strip() for match in _IN_LINE.findall(block.replace("\\\n", " ")))
    yield from _SPAN.findall(re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))


def fault(command: str) -> str:
    """What is wrong with a command; empty if nothing is."""
    text = re.split(r"\\?\||>|;|…|\.\.\.", command, maxsplit=1)[0]
    try:
        words = shlex.split(text, comments=True)[1:]
    except ValueError:  # A quotation that goes on after what was cut off.
        words = text.split()[1:]
    parser: Any = program()
    for word in words:
        if word.startswith("-"):
            name = word.partition("=")[0]
            options = OptionTable.of(parser.params).owners
            if name not in ("-h", "-") and not any(one.startswith(name) for one in options):
                return f"no option {name}"
        elif hasattr(parser, "get_command"):
            names = parser.list_commands(None)
            if word not in names:
                return f"no command {word}" if re.fullmatch("[a-z-]+", word) else ""
            parser = parser.get_command(None, word)
    return ""


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert {command: said for command in commands(text) if (said := fault(command))} == {}
    extras = {name for names in _EXTRAS.findall(text) for name in names.split(",")}
    assert (
        extras - set(re.findall(r"^(\w+) = \[", PYPROJECT.partition("optional-dependencies]")[2], re.MULTILINE))
        == set()
    )
    assert not re.search("pip install '?amphitrite", text), "it is on no index"
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert {one or other for one, other in _MAKE.findall(text)} - targets == set()


def test_hints_and_messages() -> None:
    wrong: dict[str, str] = {}
    count = 0
    for path in (path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for command in _SPAN.findall(node.value):
                    count += 1
                    if said := fault(command):
                        wrong[f"{path.relative_to(ROOT)}:{node.lineno}: {command}"] = said
    assert wrong == {}
    assert count > 60


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("ml server start -d", ""),
        ("ml online-endpoint show --na x", ""),
        ("ml server strat", "no command strat"),
        ("ml online-endpoint show --colour", "no option --colour"),
        ("ml completion fish \\| source --nothing", ""),
        ("ml GROUP VERB", ""),
    ],
)
def test_a_wrong_command_is_found(command: str, said: str) -> None:
    assert fault(command) == said


def test_commands_are_found() -> None:
    text = (
        '`ml apply`\n\n```sh\nkey=$(ml version)  # ml\neval "$(ml server env)"; ml diff \\\n  -f x\n$ ml explain\n```\n'
    )
    assert list(commands(text)) == ["ml version", "ml server env", "ml diff    -f x", "ml explain", "ml apply"]
