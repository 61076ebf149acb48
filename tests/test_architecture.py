"""The house rules that a machine can keep: imports, library owners, packages, docstrings, sizes, names.

Each test collects every offence as ``file:line: what`` and wants none. The rules in words: ``docs/architecture.md`` and
``CONTRIBUTING.md``.
"""

from __future__ import annotations

import ast
import re
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("cli", "controlplane", "dataplane", "schemas")

#: package -> packages of ours that it may import, besides itself.
MAY_IMPORT: dict[str, set[str]] = {
    "cli": {"schemas"},
    "controlplane": {"dataplane", "schemas"},
    "dataplane": {"schemas"},
    "schemas": set(),
}

#: What the pure core may import: data modules of the standard library, and the values it decides about.
CORE = "amphitrite.controlplane.core"
CORE_MAY_IMPORT = {
    *(
        "__future__",
        "collections",
        "collections.abc",
        "dataclasses",
        "datetime",
        "difflib",
        "enum",
        "fractions",
        "functools",
        "hashlib",
    ),
    *("itertools", "json", "math", "operator", "re", "types", "typing"),
    *("amphitrite.dataplane.table.routing_table", "amphitrite.schemas", CORE),
}

#: library -> where it may be imported. A library that is not named here is free.
ONLY_IN: dict[str, tuple[str, ...]] = {
    "typer": ("amphitrite.cli",),
    "click": ("amphitrite.cli",),
    "rich": ("amphitrite.cli",),
    "jmespath": ("amphitrite.cli",),
    "jsonschema": ("amphitrite.schemas",),
    "fastapi": ("amphitrite.controlplane",),
    "starlette": ("amphitrite.controlplane",),
    "uvicorn": ("amphitrite.controlplane",),
    "sqlalchemy": ("amphitrite.controlplane.store",),
    "alembic": ("amphitrite.controlplane.store",),
    "psycopg": ("amphitrite.controlplane.store",),
    "cryptography": ("amphitrite.controlplane",),
    "grpc": ("amphitrite.dataplane",),
    "envoy": ("amphitrite.dataplane.envoy.protobuf.messages", "amphitrite.dataplane.envoy.xds.ads_server"),
    "onnxruntime": ("amphitrite.dataplane.triton.backends",),
    "triton_python_backend_utils": ("amphitrite.dataplane.triton.backends",),
    "tritonclient": (),
    "gevent": (),
    "requests": (),
}

LINES_MAX = 500
LINES_MEDIAN = 150


@dataclass(frozen=True, slots=True)
class Module:
    """One source file. ``name`` is dotted and empty outside the four packages; ``imports``: (line, dotted name)."""

    path: Path
    name: str
    tree: ast.Module
    lines: int
    imports: tuple[tuple[int, str], ...]

    def at(self, line: int) -> str:
        return f"{self.path.relative_to(ROOT)}:{line}"


def _imports(tree: ast.Module, package: str) -> Iterator[tuple[int, str]]:
    """Imported names; ``from a import b`` gives ``a.b``, which is a module or a name in one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def _module(path: Path) -> Module:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text, str(path))
    relative = path.relative_to(ROOT).with_suffix("").parts
    parts = relative[:-1] if relative[-1] == "__init__" else relative
    name = ".".join(("amphitrite", *parts)) if relative[0] in PACKAGES else ""
    package = name if relative[-1] == "__init__" else name.rpartition(".")[0]
    # A relative import in a test is one of the tests' own modules.
    package = package or ".".join(relative[:-1])
    return Module(path, name, tree, text.count("\n"), tuple(_imports(tree, package)))


@cache
def modules(*folders: str) -> tuple[Module, ...]:
    return tuple(_module(path) for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))


def product() -> tuple[Module, ...]:
    return modules(*PACKAGES)


def everything() -> tuple[Module, ...]:
    return product() + modules("tests", "bench", "examples", "docs")


def within(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def test_packages_import_only_what_lies_to_their_right() -> None:
    offences = []
    for module in product():
        own = module.name.split(".")[1]
        allowed = [f"amphitrite.{package}" for package in (own, *MAY_IMPORT[own])]
        offences += [
            f"{module.at(line)}: {own} must not import {name}"
            for line, name in module.imports
            if within(name, "amphitrite") and not within(name, *allowed)
        ]
    assert not offences, "\n".join(offences)


def test_the_core_is_pure() -> None:
    offences = [
        f"{module.at(line)}: core must not import {name}"
        for module in product()
        if within(module.name, CORE)
        for line, name in module.imports
        if not within(name, *CORE_MAY_IMPORT)
    ]
    assert not offences, "\n".join(offences)


def test_each_module_has_one_name() -> None:
    """``import controlplane`` works from a checkout and would make a second copy of every class."""
    offences = [
        f"{module.at(line)}: write amphitrite.{name}"
        for module in everything()
        for line, name in module.imports
        if within(name, *PACKAGES)
    ]
    assert not offences, "\n".join(offences)


def test_libraries_stay_where_they_belong() -> None:
    offences = [
        f"{module.at(line)}: {name} belongs in {', '.join(ONLY_IN[name.split('.')[0]]) or 'no package of ours'}"
        for module in product()
        for line, name in module.imports
        if (library := name.split(".")[0]) in ONLY_IN and not within(module.name, *ONLY_IN[library])
    ]
    assert not offences, "\n".join(offences)


def test_every_folder_is_a_package_below_one_name() -> None:
    """The build and the editable install take what is a package below ``src/amphitrite``, and nothing else."""
    links = {path.name: path.resolve() for path in (ROOT / "src" / "amphitrite").iterdir() if path.is_dir()}
    links.pop("__pycache__", None)
    assert links == {package: ROOT / package for package in PACKAGES}
    folders = {module.path.parent for module in product()}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []


def test_every_module_says_what_it_decides() -> None:
    offences = [module.at(1) for module in everything() if module.tree.body and not ast.get_docstring(module.tree)]
    assert not offences, "\n".join(offences)


def test_files_are_small() -> None:
    assert [f"{m.at(1)}: {m.lines} lines" for m in everything() if m.lines > LINES_MAX] == []
    assert statistics.median(m.lines for m in product() if m.tree.body) < LINES_MEDIAN


def test_names_say_something() -> None:
    assert [m.at(1) for m in everything() if re.search(r"util|helper|manager|misc", m.path.stem)] == []


def _dotted(node: ast.expr) -> str:
    """``a.b`` of a name or of an attribute of one; "" of anything else."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def test_tests_neither_sleep_nor_patch() -> None:
    offences = []
    for module in modules("tests"):
        offences += [module.at(line) for line, name in module.imports if within(name, "unittest.mock", "mock")]
        offences += [
            module.at(node.lineno)
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Call) and _dotted(node.func) in {"time.sleep", "sleep"}
        ]
    assert not offences, "\n".join(offences)
