#!/usr/bin/env python3
"""The version of each package that an installation gets, and the hashes of its files: ``lock.txt``.

Decides what a set of packages is, how uv resolves it, how the sets share one file, and how one is
taken out of it. Must not know who installs a set, or how. ``select`` needs the standard library
alone, since it runs before anything is installed.

    deploy/lock.py select SET...    prints what ``pip install --require-hashes --no-deps -r`` takes
    deploy/lock.py update [--keep]  resolves every set with uv, writes lock.txt, prints the changes;
                                    with --keep, as after an edit of pyproject.toml, each package
                                    keeps its version where that still fits
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = Path(__file__).with_name("lock.txt")
#: What builds the package itself, as in ``build-system`` of pyproject.toml.
BUILD = "setuptools>=77"
HEAD = """\
# Every package of every installation, by version and hash. `make update` writes it.
# `for:` names the sets that have the package. Two sets may have different versions, so
# nobody installs this file as it is; a set comes from: python3 deploy/lock.py select install
"""
_FOR = "# for: "
_ANY_PYTHON = ("--universal", "--python-version", "3.10")
_IMAGE = ("--python-version", "3.11", "--python-platform", "x86_64-manylinux_2_36", "--only-binary", ":all:")


@dataclass(frozen=True, slots=True)
class Set:
    """What is installed together.

    ``extras`` of the package, ``requirements`` besides, and those of ``file``. ``same``: which of
    them have the versions of the set ``test``; None is all. ``options``: uv's, for which Pythons
    and machines.
    """

    extras: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    file: str | None = None
    same: tuple[str, ...] | None = None
    options: tuple[str, ...] = _ANY_PYTHON


@dataclass(frozen=True, slots=True)
class Package:
    """One version. ``requirement``: ``name==version``, with a marker if some machines need none."""

    requirement: str
    hashes: tuple[str, ...]
    sets: frozenset[str] = field(default_factory=frozenset)

    @property
    def name(self) -> str:
        return self.requirement.partition("==")[0]

    @property
    def version(self) -> str:
        return self.requirement.partition("==")[2].partition(";")[0].strip()


def _apart(prefix: str, folder: str, *same: str) -> dict[str, Set]:
    """A set for each ``NAME.in``: an environment of its own, whose packages need not fit ours."""
    files = sorted((ROOT / folder).glob("*.in"))
    return {f"{prefix}-{file.stem}": Set(file=f"{folder}/{file.name}", same=same) for file in files}


def sets() -> dict[str, Set]:
    """Name -> set; the first decides the versions of the others."""
    return {
        "test": Set(("test",), (BUILD,)),
        "install": Set(("serve", "client"), (BUILD,)),
        "build": Set((), (BUILD,), options=_IMAGE),
        "controlplane": Set(("cluster",), options=_IMAGE),
        "dataplane": Set(("proxy",), options=_IMAGE),
        "triton": Set(file="tests/cluster/triton_image/requirements.in", options=(*_IMAGE, "--no-deps")),
        # An environment of its own, for `make audit`.
        "audit": Set((), ("pip-audit",), same=()),
        **_apart("sdk", "tests/sdk/requirements"),
        **_apart("bench", "bench/requirements", "onnxruntime"),
    }


def read(text: str) -> tuple[Package, ...]:
    """The packages of ``lock.txt``, or of what uv writes."""
    return tuple(_packages(text.splitlines()))


def _packages(lines: Iterable[str]) -> Iterator[Package]:
    requirement, hashes, named = "", [], frozenset[str]()
    for line in lines:
        word = line.strip().removesuffix("\\").strip()
        if word.startswith("--hash="):
            hashes.append(word.removeprefix("--hash="))
        elif word and not (word.startswith("#") and not word.startswith(_FOR)):
            if requirement:
                yield Package(requirement, tuple(hashes), named)
                requirement, hashes = "", []
            if word.startswith(_FOR):
                named = frozenset(word.removeprefix(_FOR).split())
            else:
                requirement = word
    if requirement:
        yield Package(requirement, tuple(hashes), named)


def write(packages: Iterable[Package], head: str = "", *, sets: bool = True) -> str:
    """The text that ``read`` takes; without ``sets`` what pip and uv take, too."""
    return head + "".join(
        (f"{_FOR}{' '.join(sorted(package.sets))}\n" if sets else "")
        + " \\\n    ".join([package.requirement, *(f"--hash={one}" for one in package.hashes)])
        + "\n"
        for package in packages
    )


def select(packages: Iterable[Package], *names: str) -> tuple[Package, ...]:
    """What one of these sets has. Raises ValueError for a set that nothing is for."""
    chosen = tuple(package for package in packages if package.sets & set(names))
    if missing := set(names).difference(*(package.sets for package in chosen)):
        raise ValueError(f"no package is for {', '.join(sorted(missing))}")
    return chosen


def requirements(*names: str) -> str:
    """The requirements of these sets, as ``lock.txt`` has them."""
    return write(select(read(LOCK.read_text(encoding="utf-8")), *names), sets=False)


def merge(resolved: Mapping[str, Iterable[Package]]) -> tuple[Package, ...]:
    """One list of the packages of every set (name -> its packages), by name and version."""
    merged: dict[str, Package] = {}
    for name, packages in resolved.items():
        for package in packages:
            known = merged.get(package.requirement, Package(package.requirement, ()))
            hashes = tuple(sorted({*known.hashes, *package.hashes}))
            merged[package.requirement] = Package(package.requirement, hashes, known.sets | {name})
    return tuple(merged[requirement] for requirement in sorted(merged))


def changes(old: Iterable[Package], new: Iterable[Package]) -> list[str]:
    """A line for each package: ``name  old -> new``; a package may have several versions."""
    before, after = _versions(old), _versions(new)
    names = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    width = max(map(len, names), default=0)
    return [
        f"{name:{width}}  {', '.join(before.get(name, ['none']))} -> {', '.join(after.get(name, ['none']))}"
        for name in names
    ]


def _versions(packages: Iterable[Package]) -> dict[str, list[str]]:
    found: dict[str, set[str]] = {}
    for package in packages:
        found.setdefault(package.name, set()).add(package.version)
    return {name: sorted(versions) for name, versions in found.items()}


def resolve(old: Sequence[Package], *, upgrade: bool) -> tuple[Package, ...]:
    """Every set as uv resolves it now; without ``upgrade`` it keeps the versions that still fit."""
    resolved: dict[str, tuple[Package, ...]] = {}
    with tempfile.TemporaryDirectory() as directory:
        output, constraint = Path(directory) / "output.txt", Path(directory) / "constraint.txt"
        for name, wanted in sets().items():
            print(f"resolving {name}", file=sys.stderr)
            kept = () if upgrade else (package for package in old if name in package.sets)
            output.write_text(write(kept, sets=False))
            decided = resolved.get("test", ())
            same = (p for p in decided if wanted.same is None or p.name in wanted.same)
            constraint.write_text("".join(f"{package.requirement}\n" for package in same))
            _compile(wanted, output, "--constraint", str(constraint))
            resolved[name] = read(output.read_text(encoding="utf-8"))
    return merge(resolved)


def _compile(wanted: Set, output: Path, *options: str) -> None:
    sources = ["pyproject.toml"] if wanted.extras else []
    sources += [wanted.file] if wanted.file else []
    sources += ["-"] if wanted.requirements else []
    command = [
        *(_uv(), "pip", "compile", "--quiet", "--generate-hashes", "--no-annotate", "--no-header"),
        *("--no-emit-index-url", *wanted.options, *options, "--output-file", str(output)),
        *(part for extra in wanted.extras for part in ("--extra", extra)),
        *sources,
    ]
    subprocess.run(command, cwd=ROOT, input="\n".join(wanted.requirements), text=True, check=True)


def _uv() -> str:
    """On PATH, or beside this Python."""
    found = shutil.which("uv", path=f"{os.environ.get('PATH', os.defpath)}:{Path(sys.executable).parent}")
    if found is None:
        raise SystemExit("error: no uv\nhint: run `make update`, which installs it")
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="The packages of every installation, by version and hash.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    selecting = verbs.add_parser("select", help="print the requirements of these sets")
    selecting.add_argument("sets", nargs="+", metavar="SET", help=", ".join(sets()))
    updating = verbs.add_parser("update", help="resolve every set anew and print what changed")
    updating.add_argument("--keep", action="store_true", help="change only what must")
    options = parser.parse_args(arguments)
    if options.verb == "select":
        try:
            print(requirements(*options.sets), end="")
        except ValueError as exc:
            parser.error(str(exc))
        return
    old = read(LOCK.read_text(encoding="utf-8")) if LOCK.exists() else ()
    new = resolve(old, upgrade=not options.keep)
    LOCK.write_text(write(new, HEAD), encoding="utf-8")
    print("\n".join(changes(old, new) or ["Nothing changed."]))


if __name__ == "__main__":
    main()
