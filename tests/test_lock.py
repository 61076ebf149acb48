"""The lock has what the package asks for, once for each Python; it is read, merged and compared."""

from __future__ import annotations

import re
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bench.peers import PEERS
from deploy.lock import BUILD, LOCK, Package, changes, merge, read, requirements, select, sets, write

ROOT = Path(__file__).parents[1]
LOCKED = read(LOCK.read_text(encoding="utf-8"))
PYTHONS = ("3.10", "3.11", "3.12", "3.13")


def wanted(extra: str, environment: dict[str, str]) -> list[Requirement]:
    """What is installed with this extra, and with those that it takes along; "" is the package by
    itself."""
    found: list[Requirement] = []
    for one in map(Requirement, requires("amphitrite") or ()):
        if one.marker is not None and not one.marker.evaluate({**environment, "extra": extra}):
            continue
        if one.name == "amphitrite":
            found += [inner for taken in one.extras for inner in wanted(taken, environment)]
        else:
            found.append(one)
    return found


def pinned(name: str, python: str) -> dict[str, str]:
    """Package -> version, of what a set installs with this Python on this machine."""
    environment = {**default_environment(), "python_version": python, "python_full_version": f"{python}.0"}
    here = [
        one
        for package in select(LOCKED, name)
        if (one := Requirement(package.requirement)).marker is None or one.marker.evaluate(environment)
    ]
    versions = {one.name: str(one.specifier).removeprefix("==") for one in here}
    assert len(versions) == len(here), "a package is there twice"
    return versions


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("name", [name for name, one in sets().items() if one.extras])
def test_a_set_has_what_its_extras_ask_for(name: str, python: str) -> None:
    have = pinned(name, python)
    environment = {**default_environment(), "python_version": python, "python_full_version": f"{python}.0"}
    asked = [one for extra in ("", *sets()[name].extras) for one in wanted(extra, environment)]
    missing = [
        str(one)
        for one in asked
        if not one.specifier.contains(have.get(canonicalize_name(one.name), "0"), prereleases=True)
    ]
    assert len(asked) > 6 and not missing, "make update UPDATE=--keep"


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("name", sets())
def test_no_set_has_a_package_twice(name: str, python: str) -> None:
    assert pinned(name, python)


def test_every_package_has_hashes() -> None:
    assert [package.requirement for package in LOCKED if not package.hashes] == []


def test_no_set_is_unknown() -> None:
    assert set().union(*(package.sets for package in LOCKED)) == set(sets())
    assert {f"bench-{peer.program}" for peer in PEERS.values()} <= set(sets())


@pytest.mark.parametrize("name", [name for name in sets() if name.startswith("bench-")])
def test_whoever_is_measured_has_our_version_of_onnxruntime(name: str) -> None:
    assert pinned(name, "3.11").get("onnxruntime") in (None, pinned("install", "3.11")["onnxruntime"])


def test_the_lock_names_no_server() -> None:
    assert re.findall("https?:", "".join(package.requirement for package in LOCKED)) == []


def test_what_builds_the_package_is_what_pyproject_says() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.findall(r"^requires = (\[.*\])$", text, re.MULTILINE) == [f'["{BUILD}"]']


def test_what_is_written_is_read_again() -> None:
    assert read(write(LOCKED)) == LOCKED


def test_what_is_selected_is_what_pip_takes() -> None:
    (line, *hashes) = requirements("build").split(" \\\n    ")
    assert re.fullmatch(r"setuptools==[\d.]+", line)
    assert hashes and all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", one.strip()) for one in hashes)


def test_an_unknown_set_is_refused() -> None:
    with pytest.raises(ValueError, match="no package is for nothing, void"):
        select(LOCKED, "build", "void", "nothing")


OLD = (Package("a==1", ("x",)), Package("b==1 ; python_version < '3.11'", ("x",)), Package("b==2", ("x",)))


@pytest.mark.parametrize(
    ("new", "lines"),
    [
        (OLD, []),
        (OLD[1:], ["a  1 -> none"]),
        ((*OLD, Package("long-name==0.1", ())), ["long-name  none -> 0.1"]),
        ((Package("a==1.1", ()), Package("b==2", ())), ["a  1 -> 1.1", "b  1, 2 -> 2"]),
        ((OLD[0], Package("b==1", ()), OLD[2]), []),
    ],
)
def test_changes(new: tuple[Package, ...], lines: list[str]) -> None:
    assert changes(OLD, new) == lines


def test_one_version_in_two_sets_is_one_package() -> None:
    first, second = Package("a==1", ("y",)), Package("a==1", ("x", "y"))
    assert merge({"one": [first], "two": [second]}) == (Package("a==1", ("x", "y"), frozenset({"one", "two"})),)
