"""What is new in answers that each hold the last lines of every instance's log."""

from __future__ import annotations

import pytest

from amphitrite.cli.terminal import log_stream
from amphitrite.cli.terminal.log_stream import LogFollower

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
        for line in log_stream.follow(lambda: answers.pop(0), pauses.append):
            told.append(line)
    assert (told, pauses) == ([A, "a", "b"], [1.0, 1.0])
