"""The live line of a long verb."""

from __future__ import annotations

import re

import pytest

from amphitrite.cli.terminal.progress import Progress


def test_the_last_line_stays(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("blue", live=True) as progress:
        progress.phase("Loading")
        progress.done("Succeeded")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert re.search(r"\r\x1b\[Kblue: Succeeded in \d+\.\d s\n", shown.err)
    assert shown.err.endswith("\r\x1b[K")


def test_nothing_is_left_when_it_fails(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="no"), Progress("blue", live=True):
        raise ValueError("no")
    assert capsys.readouterr().err.splitlines()[-1].endswith("\x1b[K")


def test_silence_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("blue", live=False) as progress:
        progress.phase("Loading")
        progress.done("Succeeded")
    assert capsys.readouterr().err == ""
