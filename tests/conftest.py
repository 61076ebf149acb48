"""What every test may ask for on the command line."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

from . import tiers

# Until everything is collected nothing that is made can go.
gc.disable()

# How long an example takes depends on what else the machine does: no test judges that.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite golden files and delete those without an input"
    )
    parser.addoption("--quick", action="store_true", help=f"only tests without the markers {', '.join(tiers.MARKERS)}")


#: Files that share a session's server, by its fixture: one process starts it for all of them.
_TOGETHER = {
    f"tests/system/test_{name}.py": server
    for server, names in {
        "scoring": ("grpc", "model_types", "tritonclient"),
        "shared": ("byoc", "draining", "metrics", "nobody_gets_in", "semantics", "server", "tokens"),
    }.items()
    for name in names
}
_TOGETHER |= dict.fromkeys(("tests/clients/test_clients.py", "tests/clients/test_triton_examples.py"), "served")
_TOGETHER["tests/dataplane/test_nobody_gets_in_by_grpc.py"] = "tests/dataplane/test_nobody_gets_in.py"


#: Files are given out by their number of tests, the most first. One that is marked ``alone`` comes
#: as if it had so many: nothing else may use the cluster meanwhile, so it comes before those that
#: do.
_ALONE = 41
#: Those that are marked ``early`` come as if the first of them had so many, each next one fewer: at
#: the end a process would be alone with one, and all at once they only wait.
_EARLY = range(24, 0, -1)


class _ByServer(LoadFileScheduling):
    """A file's tests run in one process, and those of files in ``_TOGETHER`` in the same one."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return _TOGETHER.get(file, file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _ByServer | None:
    return _ByServer(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_configure(config: pytest.Config) -> None:
    config.option.loadscopereorder = False  # The order is that of the collection, see below.
    if config.option.quick:
        tiers.begin()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        values = getattr(item, "callspec", None)
        if values is not None and "postgresql" in values.params.values():
            item.add_marker("postgresql")
    if config.option.quick:
        items[:], others = tiers.split(items)
        config.hook.pytest_deselected(items=others)
    stands = Counter(item.path for item in items)
    stands.update(dict.fromkeys(_marked(items, "alone"), _ALONE))
    stands |= Counter(dict(zip(_marked(items, "early"), _EARLY, strict=False)))
    items.sort(key=lambda item: -stands[item.path])  # Stable: the tests of a file stay together.


def _marked(items: list[pytest.Item], marker: str) -> list[Path]:
    """The files with such a test, in the order of collection."""
    return list(dict.fromkeys(item.path for item in items if item.get_closest_marker(marker)))


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """In a whole run of several processes the cluster's images are built beside the tests, which
    otherwise would all wait for them. Whoever needs an image waits for this one then, or builds it
    where this one has failed."""
    config = session.config
    chosen = [Path(given.partition("::")[0]).resolve() for given in config.args]
    whole = Path(__file__).parent in chosen or Path(__file__).parent / "cluster" in chosen
    if (
        hasattr(config, "workerinput")
        or not getattr(config.option, "numprocesses", None)
        or not whole
        or config.option.quick
    ):
        return
    command = [sys.executable, "-m", "tests.cluster.images"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
    builder = subprocess.Popen(command, cwd=Path(__file__).parent.parent, **quiet)
    config.add_cleanup(lambda: (builder.terminate(), builder.wait()))


def pytest_collection_finish() -> None:
    """What hundreds of modules have brought stays to the end: the garbage collector need not look
    at it each time."""
    gc.freeze()
    gc.enable()
