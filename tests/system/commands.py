"""``ml`` as a process of its own, without the third of a second that importing it takes each time.

Decides how a command gets its arguments, environment, directory and outputs: it is forked from a
process that has imported the command line and done nothing else. (Starting the installed script is
``tests/cli/test_startup.py``'s and the demo's.) Must not know which commands there are.
"""

from __future__ import annotations

import multiprocessing
import os
import pkgutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from multiprocessing.context import ForkServerContext
from pathlib import Path

import amphitrite.cli


def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    modules = [f"amphitrite.cli.{module.name}" for module in pkgutil.iter_modules(amphitrite.cli.__path__)]
    context.set_forkserver_preload([*modules, "httpx", "yaml"])
    return context


_CONTEXT = _context()


def run(
    argv: tuple[str, ...], environment: Mapping[str, str], directory: Path, timeout_s: float
) -> subprocess.CompletedProcess[str]:
    """The command's outcome. Raises subprocess.TimeoutExpired, and ends it, when it takes
    longer."""
    with tempfile.TemporaryDirectory(prefix="ml-") as outputs:
        out, err = Path(outputs, "out"), Path(outputs, "err")
        out.touch()
        err.touch()
        command = _CONTEXT.Process(target=_command, args=(argv, dict(environment), directory, out, err))
        command.start()
        command.join(timeout_s)
        if command.exitcode is None:
            command.kill()
            command.join()
            raise subprocess.TimeoutExpired(["ml", *argv], timeout_s, out.read_bytes(), err.read_bytes())
        return subprocess.CompletedProcess(["ml", *argv], command.exitcode, out.read_text(), err.read_text())


def _command(argv: tuple[str, ...], environment: dict[str, str], directory: Path, out: Path, err: Path) -> None:
    for number, path in enumerate((Path(os.devnull), out, err)):
        opened = os.open(path, os.O_RDWR)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)
    sys.argv = ["ml", *argv]
    # Not before: whoever asks for a command need not have imported it.
    from amphitrite.cli.main import run as main

    main()
