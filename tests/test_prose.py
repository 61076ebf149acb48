"""The documents' form: short lines, no label without a definition, no link that leads nowhere.

Each test collects every offence as ``file:line: what`` and wants none. What the sentences say is
for readers to judge.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
#: Written by ``docs/generate.py``: their links and labels are checked, the length of their lines is
#: not.
GENERATED = ROOT / "docs" / "reference"

LONGEST = 100
#: Code spans that name a place in the code, with the folders that a page may leave out of one.
PLACE = re.compile(r"`((?:[\w.<>-]+/)+(?:[\w-]+\.(?:py|json))?)`")
LEFT_OUT = ("", "controlplane", "dataplane")
#: Names that look like labels.
NAMES = frozenset({"S3"})

_FENCE = re.compile(r"^\s*(```|~~~)")
_LABEL = re.compile(r"(?<![\w./-])[A-Z]\d{1,2}(?![\w/-])")
_LINK = re.compile(r"\]\(([^)\s]+)\)")


@dataclass(frozen=True, slots=True)
class Document:
    """A Markdown file: its path and its text."""

    path: Path
    text: str

    def lines(self) -> Iterator[tuple[int, str]]:
        """(number, line) of every line outside code fences."""
        code = False
        for number, line in enumerate(self.text.splitlines(), 1):
            if _FENCE.match(line):
                code = not code
            elif not code:
                yield number, line

    def at(self, line: int) -> str:
        return f"{self.path.relative_to(ROOT) if self.path.is_relative_to(ROOT) else self.path}:{line}"


def documents() -> list[Document]:
    paths = [*ROOT.glob("*.md")]
    for folder in ("bench", "deploy", "docs", "examples"):
        paths += (ROOT / folder).rglob("*.md")
    return [Document(path, path.read_text(encoding="utf-8")) for path in sorted(paths)]


def long_lines(document: Document) -> Iterator[str]:
    """Lines of prose that are too long. Rows of tables, and lines of a single word such as a URL,
    cannot be broken."""
    for number, line in document.lines():
        unbreakable = line.lstrip().startswith("|") or len(line.removeprefix("- ").split()) == 1
        if len(line) > LONGEST and not unbreakable:
            yield f"{document.at(number)}: {len(line)} characters, at most {LONGEST}"


def undefined_labels(document: Document) -> Iterator[str]:
    """Labels such as B2 that no heading, list entry or first cell of the same document begins
    with."""
    defined = set(re.findall(r"^(?:#+|\||-|\d+\.)\s*[*`]*([A-Z]\d{1,2})\b", document.text, re.MULTILINE))
    for number, line in document.lines():
        for label in _LABEL.findall(re.sub(r"`[^`]*`", "", line)):
            if label not in defined | NAMES:
                yield f"{document.at(number)}: {label} is not defined here"


def broken_links(document: Document) -> Iterator[str]:
    """Relative links to a file that is not there, or to a heading that its file lacks."""
    for number, line in document.lines():
        for link in _LINK.findall(re.sub(r"`[^`]*`", "", line)):
            path, _, anchor = link.partition("#")
            if "://" in link:
                continue
            target = document.path.parent / path
            if path and not target.exists():
                yield f"{document.at(number)}: {link}: there is no such file"
            elif anchor and anchor not in anchors(
                document if not path else Document(target, target.read_text("utf-8"))
            ):
                yield f"{document.at(number)}: {link}: there is no such heading"


def anchors(document: Document) -> set[str]:
    """The addresses of a document's headings, as GitHub makes them."""
    made: set[str] = set()
    for _, line in document.lines():
        if heading := re.match(r"#{1,6} (.+?)\s*#*$", line):
            words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading[1]).lower()
            slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
            number = 0
            while (name := f"{slug}-{number}" if number else slug) in made:
                number += 1
            made.add(name)
    return made


def test_lines_of_prose_are_short() -> None:
    written = [document for document in documents() if not document.path.is_relative_to(GENERATED)]
    assert [line for document in written for line in long_lines(document)] == []


def test_the_architecture_names_places_that_are_there() -> None:
    page = ROOT / "docs" / "architecture.md"
    table = page.read_text(encoding="utf-8").partition("## The path of a request")[0]
    places = set(PLACE.findall(table))
    assert len(places) > 40
    assert [name for name in sorted(places) if not any((ROOT / folder / name).exists() for folder in LEFT_OUT)] == []


def test_every_label_is_defined() -> None:
    assert [offence for document in documents() for offence in undefined_labels(document)] == []


def test_links_lead_somewhere() -> None:
    assert [offence for document in documents() for offence in broken_links(document)] == []


_LONG = "word " * 21


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (_LONG, ["page.md:1"]),
        (f"short\n\n- {_LONG}", ["page.md:3"]),
        (f"# {_LONG}", ["page.md:1"]),
        (f"| {_LONG} |", []),
        (f"- https://example.org/{'x' * 100}", []),
        (f"see https://example.org/{'x' * 100}", ["page.md:1"]),
        (f"```\n{_LONG}\n```\n{_LONG}", ["page.md:4"]),
    ],
)
def test_a_long_line_is_found(text: str, wanted: list[str]) -> None:
    assert [offence.split(": ")[0] for offence in long_lines(Document(Path("page.md"), text))] == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("as in B2.", ["page.md:1"]),
        ("## B2\n\nas in B2.", []),
        ("| B2 | a goal |\n\nas in **B2**", []),
        ("`B2`, RS256, HTTP/2, UTF-8, S3, x-B2", []),
        ("```\nB2\n```", []),
    ],
)
def test_an_undefined_label_is_found(text: str, wanted: list[str]) -> None:
    assert [offence.split(": ")[0] for offence in undefined_labels(Document(Path("page.md"), text))] == wanted


@pytest.mark.parametrize(
    ("link", "broken"),
    [
        ("other.md", False),
        ("other.md#two-words-its-own", False),
        ("other.md#again-1", False),
        ("#here", False),
        ("https://example.org/nothing.md", False),
        ("missing.md", True),
        ("other.md#two", True),
        ("#there", True),
        ("other.md#in-code", True),
    ],
)
def test_a_broken_link_is_found(tmp_path: Path, link: str, broken: bool) -> None:
    (tmp_path / "other.md").write_text("# Two words: *its own*\n## Again\n## Again\n```\n# In code\n```\n")
    page = Document(tmp_path / "page.md", f"# Here\n\n[a link]({link})\n")
    assert [offence.split(": ")[0].rpartition(":")[2] for offence in broken_links(page)] == ["3"] * broken
