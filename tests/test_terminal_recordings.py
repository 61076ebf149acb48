"""The recordings of ``docs/terminal.md``: what makes them, and that each scene has its two."""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
BYTES_MAX = 100_000
_SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The names of the script, which imports its neighbours."""
    monkeypatch.syspath_prepend(str(DOCS / "terminal"))
    yield runpy.run_path(str(DOCS / "terminal" / "record.py"))
    for name in ("drawing", "recorder", "screen"):
        sys.modules.pop(name, None)


def test_each_scene_is_on_the_page_twice(made: dict[str, Any]) -> None:
    names = {scene.name for scene in (*made["SCENES"], made["INSTALL"])}
    page = (DOCS / "terminal.md").read_text()
    for folder in ("before", "after"):
        assert set(re.findall(rf"\(terminal/{folder}/(\w+)\.svg\)", page)) == names
        assert {path.stem for path in (DOCS / "terminal" / folder).glob("*.svg")} == names


def test_the_pictures_are_small_and_whole() -> None:
    for picture in (DOCS / "terminal").rglob("*.svg"):
        assert picture.stat().st_size < BYTES_MAX, picture
        assert ElementTree.parse(picture).getroot().find(f"{_SVG}title") is not None, picture


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("a\r\nb\r\n", ["a", "b"]),
        ("load (1)\r\x1b[Kdone\r\n", ["done"]),
        ("loading\rdone", ["doneing"]),
        ("abcdefghijk", ["abcdefghij", "k"]),
        ("abc\b\bX", ["aXc"]),
        ("a\tb", ["a       b"]),
        ("\x1b[32mok\x1b[0m  \x1b]0;title\x07\x1b[?2004h", ["ok"]),
    ],
)
def test_what_a_terminal_shows(made: dict[str, Any], written: str, shown: list[str]) -> None:
    screen = made["recorder"].screen.Screen(10)
    screen.feed(written)
    assert ["".join(char for char, _ in row) for row in screen.rows()] == shown


def test_a_row_that_stays_is_drawn_once_and_the_last_screen_is_seen_without_animation(made: dict[str, Any]) -> None:
    screen = made["recorder"].screen.Screen(80)
    frames = []
    for at, text in enumerate(["$ ml\r\n", "\x1b[33mCreating\x1b[0m", "\r\x1b[K\x1b[32mSucceeded\x1b[0m <1 s"]):
        screen.feed(text)
        frames.append((float(at), screen.rows()))
    root = ElementTree.fromstring(made["drawing"].svg(frames, 80, "a & b"))
    rows = [
        ("".join(row.itertext()), row.get("visibility"), row.find(f"{_SVG}animate")) for row in root.iter(f"{_SVG}g")
    ]
    assert [(text, hidden) for text, hidden, _ in rows] == [
        ("$ ml", None),
        ("Creating", "hidden"),
        ("Succeeded<1 s", None),
    ]
    assert rows[0][2] is None
    assert rows[1][2] is not None and rows[1][2].get("values") == "hidden;visible;hidden"
