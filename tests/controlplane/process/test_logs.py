"""One JSON object a line, whatever is logged."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from amphitrite.controlplane.process import logs


@pytest.fixture(autouse=True)
def root_as_before() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("amphitrite")
    handlers, level, our_level = list(root.handlers), root.level, ours.level
    root.handlers = []
    yield
    for handler in root.handlers:
        handler.close()
    root.handlers = handlers
    root.setLevel(level)
    ours.setLevel(our_level)


def test_lines_are_json_with_fields_and_traceback(tmp_path: Path) -> None:
    logs.configure(tmp_path / "log")
    log = logging.getLogger("somewhere")
    log.info("two\nlines of %s", "text", extra={"fields": {"status": 200, "path": Path("/a")}})
    try:
        raise ValueError("broken")
    except ValueError:
        log.exception("failed")
    first, second = (json.loads(line) for line in (tmp_path / "log").read_text().splitlines())
    assert first.pop("time").endswith("Z")
    assert first == {
        "level": "info",
        "logger": "somewhere",
        "message": "two\nlines of text",
        "status": 200,
        "path": "/a",
    }
    assert "ValueError: broken" in second["traceback"]


def test_text_for_people_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(None, text=True)
    logging.getLogger("somewhere").info("said", extra={"fields": {"status": 200}})
    assert capsys.readouterr().out.endswith("Z info somewhere: said status=200\n")


#: What a path may contain once it is decoded, to look like another line or to hide its own.
FORGED = "/a\n2026-11-23T03:00:00.000Z info amphitrite.controlplane: stopped\r\x1b[2K\x9b2K\x85\u2028\u202eb\ud800"


@pytest.mark.parametrize("text", [True, False], ids=["text", "json"])
def test_a_path_cannot_write_a_line_of_its_own(text: bool, capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(None, text=text)
    logging.getLogger("request").info("GET %s 404", FORGED, extra={"fields": {"path": FORGED}})
    try:
        raise ValueError(FORGED)
    except ValueError:
        logging.getLogger("request").exception("failed")
    said = capsys.readouterr().out
    first, second, *traceback = said.removesuffix("\n").split("\n")
    assert FORGED not in first + second
    assert all(line.startswith("  ") for line in traceback)
    assert [character for character in said if not (character.isprintable() or character == "\n")] == []
    if not text:
        assert json.loads(first)["path"] == FORGED
        assert (FORGED in json.loads(second)["traceback"], traceback) == (True, [])


@pytest.mark.parametrize(
    ("level", "said"),
    [
        ("debug", ["amphitrite.x debug", "amphitrite.x info", "library info"]),
        ("info", ["amphitrite.x info", "library info"]),
        ("error", []),
    ],
)
def test_a_level_is_ours_and_libraries_are_never_below_info(level: str, said: list[str], tmp_path: Path) -> None:
    logs.configure(tmp_path / "log", level)
    for name in ("amphitrite.x", "library"):
        for number in (logging.DEBUG, logging.INFO):
            logging.getLogger(name).log(number, "said")
    text = (tmp_path / "log").read_text() if (tmp_path / "log").exists() else ""
    lines = [json.loads(line) for line in text.splitlines()]
    assert sorted(f"{line['logger']} {line['level']}" for line in lines) == said
