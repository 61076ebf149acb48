"""Starting is quick because little is imported: what is slow comes when it is needed.

Modules are counted rather than milliseconds, which depend on the machine.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

#: Tens of milliseconds each.
SLOW = {
    "httpx",
    "yaml",
    "jsonschema",
    "jmespath",
    "rich",
    "pydantic",
    "ssl",
    "asyncio",
    "azure",
    "fastapi",
    "sqlalchemy",
}

PROGRAM = """
import contextlib, io, sys
from amphitrite.cli.main import main
from amphitrite.cli.connection import connect
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    main(sys.argv[1:], connect)
print(*sorted(sys.modules))
"""


def imported(*arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env={"ML_HOME": "/nowhere", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("arguments", ["--help", "online-endpoint --help", "server status", "--version"])
def test_nothing_slow(arguments: str) -> None:
    assert not SLOW & imported(*arguments.split())


def test_help_imports_no_group() -> None:
    groups = {f"amphitrite.cli.{name}" for name in ("endpoint", "deployment", "model", "server")}
    assert not groups & imported("--help")


def test_a_verb_without_documents_needs_no_schemas() -> None:
    # Rich comes with httpx where it is installed, so it does not count here.
    assert not (SLOW - {"httpx", "rich", "ssl", "asyncio"}) & imported("online-endpoint", "show", "-n", "ep1")
