"""The images carry what the product imports: each dependency of the package has its line in the images' locks."""

from __future__ import annotations

from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCKS = Path(__file__).parents[1] / "deploy" / "images" / "requirements"


def wanted(extra: str) -> set[str]:
    """What is installed with this extra, and with those that it takes along; "" is the package by itself."""
    found: set[str] = set()
    for one in map(Requirement, requires("amphitrite") or ()):
        if one.marker is not None and not one.marker.evaluate({"extra": extra}):
            continue
        if one.name == "amphitrite":
            found = found.union(*map(wanted, one.extras))
        else:
            found.add(canonicalize_name(one.name))
    return found


@pytest.mark.parametrize(("lock", "extra"), [("controlplane", "cluster"), ("dataplane", "proxy")])
def test_every_dependency_is_locked(lock: str, extra: str) -> None:
    lines = (LOCKS / f"{lock}.txt").read_text().splitlines()
    locked = {canonicalize_name(line.partition("==")[0]) for line in lines if "==" in line}
    assert wanted(extra) <= locked, "run deploy/images/lock.sh"
