"""The ends of files that grow, are rotated and are cut."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

import pytest

from amphitrite.cli.server import file_tail


def every(batches: Iterator[list[tuple[str, str]]]) -> Iterator[tuple[str, str]]:
    return chain.from_iterable(batches)


def last(file: Path, count: int) -> list[str]:
    return [line for _, line in every(file_tail.lines({"log": file}, count, follow=False))]


@pytest.mark.parametrize(
    ("text", "count", "wanted"),
    [
        ("", 5, []),
        ("a\nb\nc\n", 2, ["b", "c"]),
        ("a\nb\nc\n", 9, ["a", "b", "c"]),
        ("a\nb\nc\n", 0, []),
        ("a\nb\nhalf a li", 2, ["a", "b"]),
        ("".join(f"{n:>50}\n" for n in range(5000)), 2, [f"{4998:>50}", f"{4999:>50}"]),
    ],
)
def test_last_lines(text: str, count: int, wanted: list[str], tmp_path: Path) -> None:
    (tmp_path / "log").write_text(text)
    assert last(tmp_path / "log", count) == wanted


def test_a_file_that_is_not_there_yet(tmp_path: Path) -> None:
    assert last(tmp_path / "log", 5) == []


def test_following_through_growth_rotation_and_truncation(tmp_path: Path) -> None:
    file, later = tmp_path / "log", tmp_path / "later"
    file.write_text("old\nfirst\nsec")
    following = every(file_tail.lines({"log": file, "later": later}, 1, follow=True))
    assert next(following) == ("log", "first")
    with file.open("a") as stream:
        stream.write("ond\nthird\n")
    later.write_text("hello\n")
    assert sorted(islice(following, 3)) == [("later", "hello"), ("log", "second"), ("log", "third")]
    file.rename(tmp_path / "log.1")
    file.write_text("a much longer line than all that was there before\n")
    assert next(following) == ("log", "a much longer line than all that was there before")
    file.write_text("cut\n")
    assert next(following) == ("log", "cut")
