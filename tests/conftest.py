"""What every test may ask for on the command line."""

from __future__ import annotations

from itertools import groupby

import pytest
from hypothesis import settings

# How long an example takes depends on what else the machine does: no test judges that.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite golden files and delete those without an input"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that mostly wait for pods are spread evenly among the others, so that some process always has work."""
    files = [list(group) for _, group in groupby(items, key=lambda item: item.path)]
    waiting = [file for file in files if file[0].path.parent.name == "cluster"]
    # Whoever needs the cluster alone comes first: nobody has to wait for the others then.
    waiting.sort(key=lambda file: not getattr(getattr(file[0], "module", None), "ALONE", False))
    others = [file for file in files if file[0].path.parent.name != "cluster"]
    every = max(1, len(others) // (len(waiting) or 1) // 2)
    ordered: list[list[pytest.Item]] = []
    while waiting or others:
        ordered += [waiting.pop(0)] if waiting else []
        ordered += others[:every]
        others = others[every:]
    items[:] = [item for file in ordered for item in file]
