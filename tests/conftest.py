"""What every test may ask for on the command line."""

from __future__ import annotations

import subprocess
import sys
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes depends on what else the machine does: no test judges that.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite golden files and delete those without an input"
    )


_FIRST = ("ALONE", "LONG")
#: The share of the other files that comes before the first that needs a cluster: its images are built meanwhile.
_BEFORE_CLUSTER = 1 / 5


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """In a whole run of several processes the cluster's images are built beside the tests, which otherwise would all
    wait for them. Whoever needs an image waits for this one then, or builds it where this one has failed."""
    config = session.config
    chosen = [Path(given.partition("::")[0]).resolve() for given in config.args]
    whole = Path(__file__).parent in chosen or Path(__file__).parent / "cluster" in chosen
    if hasattr(config, "workerinput") or not getattr(config.option, "numprocesses", None) or not whole:
        return
    command = [sys.executable, "-m", "tests.cluster.images"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
    builder = subprocess.Popen(command, cwd=Path(__file__).parent.parent, **quiet)
    config.add_cleanup(lambda: (builder.terminate(), builder.wait()))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that mostly wait for pods are spread evenly among the others, so that some process always has work."""
    files = [list(group) for _, group in groupby(items, key=lambda item: item.path)]
    waiting = [file for file in files if _needs_cluster(file[0])]
    # Whoever needs the cluster alone comes first: nobody has to wait for the others then. Then those that take minutes:
    # at the end short ones are left, and no process is alone with a long one.
    waiting.sort(key=lambda file: [not getattr(getattr(file[0], "module", None), mark, False) for mark in _FIRST])
    others = [file for file in files if not _needs_cluster(file[0])]
    first = int(len(others) * _BEFORE_CLUSTER) if waiting else 0
    ordered, others = others[:first], others[first:]
    every = max(1, len(others) // (len(waiting) or 1) // 2)
    while waiting or others:
        ordered += [waiting.pop(0)] if waiting else []
        ordered += others[:every]
        others = others[every:]
    items[:] = [item for file in ordered for item in file]


def _needs_cluster(item: pytest.Item) -> bool:
    """As all tests of its file do: it is in ``tests/cluster``, or has a fixture of that name."""
    return item.path.parent.name == "cluster" or hasattr(getattr(item, "module", None), "cluster")
