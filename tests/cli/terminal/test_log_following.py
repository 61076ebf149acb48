"""What is new in answers that each hold the last lines of every instance's log."""

from __future__ import annotations

import pytest

from amphitrite.cli.terminal import ages, log_stream
from amphitrite.cli.terminal.log_stream import LogFollower
from amphitrite.schemas.errors import Error

A, B = "==> ep-blue-1, ready <==", "==> ep-blue-2, ready <=="

ROWS: list[tuple[list[list[str]], list[list[str]]]] = [
    ([["one line"], ["one line", "two"]], [["one line"], ["two"]]),
    ([[A, "a"], [A, "a"], [A, "a", "b"]], [[A, "a"], [], ["b"]]),
    ([[A], [A, "a"]], [[A], ["a"]]),
    ([[A, "a", B, "x"], [A, "a", "b", B, "x"], [A, "a", "b", B, "x", "y"]], [[A, "a", B, "x"], [A, "b"], [B, "y"]]),
    ([[A, "a", "b", "c"], [A, "b", "c", "d"], [A, "e", "f", "g"]], [[A, "a", "b", "c"], ["d"], ["e", "f", "g"]]),
    ([[A, "a"], ["==> ep-blue-1, exited, exit code 1 <==", "a", "Killed"]], [[A, "a"], ["Killed"]]),
    ([[], [A, "a"]], [[], [A, "a"]]),
    ([[A, "x", "x"], [A, "x", "x", "x"]], [[A, "x", "x"], ["x"]]),
]


@pytest.mark.parametrize(("answers", "news"), ROWS)
def test_rows(answers: list[list[str]], news: list[list[str]]) -> None:
    following = LogFollower()
    assert [following.new_lines("\n".join(answer)) for answer in answers] == news


def test_following_ends_with_the_error_that_asking_raises() -> None:
    answers, pauses = [f"{A}\na\n", f"{A}\na\nb\n"], []
    told = []
    with pytest.raises(IndexError):
        for line in log_stream.follow(lambda: answers.pop(0), pause=pauses.append):
            told.append(line)
    assert (told, pauses) == ([A, "a", "b"], [1.0, 1.0])


@pytest.mark.parametrize(
    ("whole", "young", "later", "lines"),
    [
        ([A, "a", "b"], [A, "b"], [A, "a", "b", "c"], [A, "b", "c"]),
        ([A, "a", "b"], [A], [A, "a", "b", "c"], [A, "c"]),
        ([A, "a"], [A, "b"], [A, "a", "b"], [A, "b"]),
        ([A, "a"], [A, "a", "b"], [A, "a", "b", "c"], [A, "a", "b", "c"]),
        ([A, "a", B, "x"], [A, B, "x"], [A, "a", "b", B, "x"], [A, B, "x", A, "b"]),
    ],
)
def test_beginning_with_the_young_lines(whole: list[str], young: list[str], later: list[str], lines: list[str]) -> None:
    answers = ["\n".join(whole), "\n".join(later), "\n".join(later)]
    told = []
    with pytest.raises(IndexError):
        for line in log_stream.follow(lambda: answers.pop(0), lambda: "\n".join(young), pause=lambda _: None):
            told.append(line)
    assert told == lines


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", ("", "", 0)),
        ("a line\n", ("", "a line\n", 0)),
        (f"{A}\na\n{B}\nx\ny\n", ("ep-blue-2, ready", "x\ny\n", 1)),
        (f"{A}\na\n{B}\n", ("ep-blue-2, ready", "", 1)),
    ],
)
def test_the_newest(text: str, wanted: tuple[str, str, int]) -> None:
    assert log_stream.newest(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"), [(None, None), ("10m", 600), ("1h30m", 5400), ("90s", 90), ("2d", 172_800)]
)
def test_an_age(text: str | None, wanted: int | None) -> None:
    assert ages.seconds("--since", text) == wanted


@pytest.mark.parametrize("text", ["", "10", "m", "10 m", "PT10M", "0s", "-5m", "1w"])
def test_no_age(text: str) -> None:
    with pytest.raises(Error, match="allowed: a time such as"):
        ages.seconds("--since", text)


@pytest.mark.parametrize(
    ("heading", "previous", "more"),
    [
        ("ep-blue-7-0-1, ready", False, ""),
        ("ep-blue-7-0-3, starting", False, "--previous prints the attempt before, "),
        ("ep-blue-7-0-3, starting", True, ""),
    ],
)
def test_the_next_attempt_names_the_log_of_the_one_that_failed(heading: str, previous: bool, more: str) -> None:
    said = f"{heading}: one of 3 logs; {more}--all-instances prints all"
    assert log_stream.which(heading, 2, previous=previous) == said
