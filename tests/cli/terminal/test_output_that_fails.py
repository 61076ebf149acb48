"""The program itself where nothing can be printed."""

from __future__ import annotations

import subprocess
import sys

import pytest

_RUN = "import sys; from amphitrite.cli.main import run; sys.argv = ['ml', 'version']; run()"


@pytest.mark.parametrize(
    ("redirection", "code", "says"),
    [(">/dev/full", 1, "error: cannot write the output: No space left on device [LocalFileError]\n"), (">&-", 0, "")],
    ids=["full", "closed"],
)
def test_an_output_that_cannot_be_written(redirection: str, code: int, says: str) -> None:
    ended = subprocess.run(
        ["/bin/sh", "-c", f'"$0" -c "$1" {redirection}', sys.executable, _RUN],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (code, says)
