"""Docstrings and comments of the packages: short lines, and the two sentences that open a module.

Each test collects every offence as ``file:line: what`` and wants none. What the sentences say is
for readers to judge.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
#: Revisions of the database's schema are never edited, so they are left out.
PACKAGES = ("cli", "controlplane", "dataplane", "schemas")
LONGEST = 100
#: A comment for a tool stands at the end of a line of code, however long that is.
_FOR_TOOLS = re.compile(r"# (fmt|type|noqa)\b")


def prose(source: str) -> Iterator[tuple[int, str]]:
    """(number, line) of each line that a docstring or a comment is part of."""
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not _FOR_TOOLS.match(token.string):
            yield token.start[0], lines[token.start[0] - 1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node
        ):
            first, last = node.body[0].lineno, node.body[0].end_lineno or node.body[0].lineno
            yield from ((number, lines[number - 1]) for number in range(first, last + 1))


def long_lines(source: str) -> list[int]:
    return [number for number, line in prose(source) if len(line) > LONGEST]


def opens_with_a_decision(source: str) -> bool:
    """Whether a module says what it decides and what it must not know or do."""
    text = " ".join((ast.get_docstring(ast.parse(source)) or "").lower().split())
    return bool(re.search(r"\bdecides?\b", text) and "must not" in text)


def sources() -> list[tuple[str, str]]:
    paths = sorted(
        path for package in PACKAGES for path in (ROOT / package).rglob("*.py") if "versions" not in path.parts
    )
    return [(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")) for path in paths]


def test_lines_of_prose_are_short() -> None:
    assert [f"{path}:{number}" for path, source in sources() for number in long_lines(source)] == []


def test_modules_open_with_what_they_decide_and_must_not_know() -> None:
    assert [path for path, source in sources() if source and not opens_with_a_decision(source)] == []


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        (f'"""{"word " * 20}"""\n', [1]),
        (f'def f() -> None:\n    """Short.\n\n    {"word " * 20}\n    """\n', [4]),
        (f"# {'word ' * 20}\n", [1]),
        (f"x = {'1 + ' * 25}1  # short\n", [1]),
        (f"x = {'1 + ' * 25}1  # type: ignore[misc]\n", []),
        (f"x = '{'word ' * 20}'\n", []),
    ],
)
def test_a_long_line_is_found(source: str, lines: list[int]) -> None:
    assert long_lines(source) == lines


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ('"""A. Decides b. Must\nnot know c."""', True),
        ('"""A. Must not know c."""', False),
        ('"""A. Decides b."""', False),
        ("x = 1", False),
    ],
)
def test_a_module_without_the_two_sentences_is_found(source: str, wanted: bool) -> None:
    assert opens_with_a_decision(source) is wanted
