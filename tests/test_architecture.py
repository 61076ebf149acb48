"""The house rules that a machine can keep: imports, library owners, packages, docstrings, sizes,
names.

Each test collects every offence as ``file:line: what`` and wants none. The rules in words:
``docs/architecture.md`` and ``CONTRIBUTING.md``.
"""

from __future__ import annotations

import ast
import re
import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("cli", "controlplane", "dataplane", "schemas")

#: package -> packages of ours that it may import, besides itself.
MAY_IMPORT: dict[str, set[str]] = {
    "cli": {"schemas"},
    "controlplane": {"dataplane", "schemas"},
    "dataplane": {"schemas"},
    "schemas": set(),
}

#: What the pure core may import: data modules of the standard library, and the values it decides
#: about.
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
    *("itertools", "json", "math", "operator", "re", "types", "typing", "zoneinfo"),
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
#: Modules in one folder, without its ``__init__``.
FILES_MAX = 20

#: room -> rooms of the same package that it may import. A room that is not named here may import
#: none but itself. ``amphitrite.cli`` and its like stand for the modules directly below the
#: package.
ROOMS: dict[str, dict[str, set[str]]] = {
    "cli": {
        "cli": {"session", "terminal"},
        "verbs": {"assets", "documents", "resources", "server", "session", "terminal"},
        "resources": {"assets", "documents", "session", "terminal"},
        "assets": {"documents", "session", "terminal"},
        "server": {"session", "terminal"},
        "session": {"terminal"},
        "documents": {"terminal"},
        "terminal": set(),
    },
    "controlplane": {
        "controlplane": {"process", "settings", "runtimes"},
        "process": {
            *("agents", "api", "auth", "clusters", "core", "leadership", "reconciliation", "runtimes", "services"),
            *("settings", "store"),
        },
        "transfer": {"settings", "store"},
        "integrity": {"auth", "settings", "store"},
        "api": {"agents", "auth", "core", "metrics", "runtimes", "services", "settings", "store"},
        "services": {"agents", "auth", "core", "runtimes", "settings", "store"},
        "clusters": {"agents", "auth", "core", "runtimes", "settings", "store"},
        "leadership": {"clusters", "reconciliation", "runtimes", "settings", "store"},
        "reconciliation": {"agents", "auth", "core", "metrics", "runtimes", "services", "settings", "store"},
        "metrics": {"core", "store"},
        "store": {"agents", "auth", "core"},
        "runtimes": {"core", "settings"},
        "agents": {"core"},
        "auth": {"core", "settings"},
        "settings": {"core"},
        "core": set(),
    },
    "dataplane": {
        "dataplane": {"agent", "envoy", "machine"},
        "agent": {"machine", "proxy", "table"},
        "envoy": {"comparison", "machine", "metrics", "proxy", "table"},
        "proxy": {"table"},
        "triton": {"machine", "table"},
        "fetch": set(),
        "metrics": {"table"},
        "comparison": set(),
        "table": {"machine"},
        "machine": set(),
    },
    "schemas": {
        "explanations": {"schemas"},
        "repository": set(),
        "documents": {"schemas", "wire"},
        "wire": {"schemas"},
        "schemas": set(),
    },
}


@dataclass(frozen=True, slots=True)
class Module:
    """One source file. ``name`` is dotted and empty outside the four packages; ``imports``: (line,
    dotted name)."""

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
    """The build and the editable install take what is a package below ``src/amphitrite``, and
    nothing else."""
    links = {path.name: path.resolve() for path in (ROOT / "src" / "amphitrite").iterdir() if path.is_dir()}
    links.pop("__pycache__", None)
    assert links == {package: ROOT / package for package in PACKAGES}
    folders = {module.path.parent for module in product()}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []


def room(name: str) -> str:
    """Of ``amphitrite.cli.verbs.model`` it is ``verbs``; of ``amphitrite.cli.main``, ``cli``."""
    parts = name.split(".")
    folder = ROOT.joinpath(*parts[1:3])
    return parts[2] if len(parts) > 2 and folder.is_dir() else parts[1]


def test_rooms_import_only_what_the_table_says() -> None:
    offences, used = [], set()
    for module in product():
        package, own = module.name.split(".")[1], room(module.name)
        for line, name in module.imports:
            if not within(name, f"amphitrite.{package}") or room(name) == own or name == f"amphitrite.{package}":
                continue
            used.add((package, own, room(name)))
            if room(name) not in ROOMS[package].get(own, set()):
                offences.append(f"{module.at(line)}: {own} must not import {name}")
    assert not offences, "\n".join(offences)
    allowed = {(package, own, other) for package, rows in ROOMS.items() for own, some in rows.items() for other in some}
    unneeded = [f"{package}: {own} -> {other}" for package, own, other in sorted(allowed - used)]
    assert not unneeded, "the table allows what nobody needs: " + ", ".join(unneeded)


#: Envoy's folder, and the modules outside of it that choose it as the proxy.
ENVOY = "amphitrite.dataplane.envoy"
CHOOSE_ENVOY = {"amphitrite.dataplane.__main__", "amphitrite.dataplane.orphaned_proxies"}


def test_one_folder_knows_envoy() -> None:
    """A second router touches its own folder, the two modules that choose it, and
    ``pyproject.toml``."""
    importers = {m.name for m in product() if any(within(name, ENVOY) for _, name in m.imports)}
    assert {name for name in importers if not within(name, ENVOY)} == CHOOSE_ENVOY
    protocol = [m for m in product() if within(m.name, "amphitrite.dataplane.proxy")]
    assert protocol and [m.at(1) for m in protocol if "envoy" in m.path.read_text(encoding="utf-8").lower()] == []


#: A runtime's folder -> who may import it. Everybody else knows ``runtimes.runtime`` alone.
BUILD_RUNTIMES = {
    "amphitrite.controlplane.runtimes.kubernetes": (
        "amphitrite.controlplane.clusters",
        "amphitrite.controlplane.leadership.lease_store",
    ),
    "amphitrite.controlplane.runtimes.local": (
        "amphitrite.controlplane.__main__",
        "amphitrite.controlplane.process.assembly",
    ),
}


@pytest.mark.parametrize(("runtime", "builders"), BUILD_RUNTIMES.items())
def test_only_who_builds_a_runtime_knows_it(runtime: str, builders: tuple[str, ...]) -> None:
    importers = {m.name for m in product() if any(within(name, runtime) for _, name in m.imports)}
    outside = {name for name in importers if not within(name, runtime)}
    assert [name for name in sorted(outside) if not within(name, *builders)] == []
    assert all(any(within(name, builder) for name in outside) for builder in builders), "nobody needs it"


def folder_imports() -> dict[str, set[str]]:
    """Folder -> the other folders of the product that its modules import."""
    folders = {module.name: str(module.path.parent.relative_to(ROOT)) for module in product()}
    found: dict[str, set[str]] = {folder: set() for folder in folders.values()}
    for module in product():
        for _, name in module.imports:
            while name and name not in folders:
                name = name.rpartition(".")[0]
            if name and folders[name] != folders[module.name]:
                found[folders[module.name]].add(folders[name])
    return found


def test_there_are_no_circles_between_folders() -> None:
    try:
        tuple(TopologicalSorter(folder_imports()).static_order())
    except CycleError as error:
        raise AssertionError(" -> ".join(error.args[1])) from None


def test_folders_are_rooms() -> None:
    """Each says what it decides, none has more modules than a page shows, and no name occurs twice
    in a package."""
    modules_of = Counter(m.path.parent for m in product() if m.path.stem != "__init__")
    assert [f"{folder.relative_to(ROOT)}: {n}" for folder, n in modules_of.items() if n > FILES_MAX] == []
    doors = {m.path.parent: ast.get_docstring(m.tree) for m in product() if m.path.stem == "__init__"}
    assert [str(folder.relative_to(ROOT)) for folder in modules_of if not doors.get(folder)] == []
    names = Counter((m.name.split(".")[1], m.path.stem) for m in product() if not m.path.stem.startswith("__"))
    assert [f"{package}: {name}" for (package, name), n in names.items() if n > 1] == []


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
