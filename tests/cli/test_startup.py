"""Starting is quick because little is imported: what is slow comes when it is needed.

Modules are counted rather than milliseconds, which depend on the machine.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

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
GROUPS = {
    f"amphitrite.cli.verbs.{name}"
    for name in (
        *("endpoint", "deployment", "model", "environment", "compute", "workspace", "server"),
        *("apply", "configure", "config", "account", "resource_group", "azure_elsewhere", "completion"),
    )
}

PROGRAM = """
import contextlib, io, sys
from amphitrite.cli.main import main
from amphitrite.cli.session.connection import connect
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


@pytest.mark.parametrize("arguments", ["--help", "--version"])
def test_help_imports_nothing_slow(arguments: str) -> None:
    assert (SLOW | GROUPS) & imported(arguments) == set()


@pytest.mark.parametrize("arguments", ["online-endpoint --help", "server status", "online-endpoint show -n ep1"])
def test_a_verb_imports_its_group_alone(arguments: str) -> None:
    # Typer itself may use pydantic for the values of options.
    found = imported(*arguments.split())
    assert (SLOW - {"pydantic"}) & found == set()
    assert len(GROUPS & found) == 1


def test_reading_needs_neither_yaml_nor_schemas() -> None:
    found = imported("--server-url", "https://127.0.0.1:1", "online-endpoint", "show", "-n", "ep1")
    assert (SLOW - {"pydantic", "httpx", "ssl"}) & found == set()
    assert "httpx" in found


INTERRUPTED = """
import importlib, os, signal, sys

interrupted_at = sys.argv.pop(1)

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == interrupted_at:
            os.kill(os.getpid(), signal.SIGINT)

# As on a terminal. What a shell runs in the background starts with SIGINT ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Finder())
getattr(importlib.import_module(sys.argv.pop(1)), sys.argv.pop(1))()
"""


@pytest.mark.parametrize("module", ["typer", "amphitrite.cli.session.connection", "amphitrite.cli.verbs.server"])
def test_an_interrupt_during_the_imports_leaves_no_traceback(module: str) -> None:
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    [script] = re.findall(r'^ml = "(.*):(.*)"$', project, re.MULTILINE)
    command = [sys.executable, "-c", INTERRUPTED, module, *script, "server", "status"]
    done = subprocess.run(command, env={"ML_HOME": "/nowhere"}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
