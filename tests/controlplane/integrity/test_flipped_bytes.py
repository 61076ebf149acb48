"""A random byte of each kind of file of a home changes: it is detected, or it changes nothing.

Each row of the table in docs/security.md is one row of ``KINDS`` here. ``harmless``: what readers
get from the file is what they got before. Every reader may only raise ``Error``.
"""

from __future__ import annotations

import random
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from amphitrite.cli.terminal import home_directory
from amphitrite.controlplane.auth import certificates, credentials
from amphitrite.controlplane.integrity import __main__ as program
from amphitrite.controlplane.runtimes.local import instance_records
from amphitrite.controlplane.settings import settings
from amphitrite.controlplane.settings.home import Home
from amphitrite.controlplane.settings.settings import Settings
from amphitrite.controlplane.store.state.database import open_store
from amphitrite.controlplane.transfer import backup
from amphitrite.dataplane.machine import processes
from amphitrite.dataplane.table import saved_table
from amphitrite.schemas.errors import Error

from .homes import NEW, fill, rows

PAGE = Path(__file__).resolve().parents[3] / "docs" / "security.md"
#: Kinds that other tests change bytes of.
ELSEWHERE = {
    "directory of backends": "dataplane/triton/test_installation.py::test_a_damaged_backend_directory_is_made_again",
    "compiled backend": "dataplane/triton/test_installation.py::test_it_is_compiled_once_and_for_all_homes",
}
#: For each kind of file. The same bytes in each run.
FLIPS = 20
#: Kinds with bytes that nobody reads, or that a start makes again without a word.
MAYBE_HARMLESS = ("database", "backup", "authority", "certificate and key", "bundle of roots", "credential", "log")


def database(home: Home) -> Any:
    return rows(str(home.database))


def tls(home: Home) -> Any:
    """What a start makes of them. What it makes anew was damaged, and is good then."""
    made = certificates.ensure(home, ["127.0.0.1"], time.time())
    assert list(certificates.problems(home)) == []
    return made.ca_file.read_bytes()


def restored(home: Home) -> Any:
    """Everything that comes out of the backup beside the home."""
    target = Home(home.root.parent / "restored")
    shutil.rmtree(target.root, ignore_errors=True)
    backup.restore(settings.read({}, home=target.root), home.root.parent / "backup.tar")
    files = {
        path.name: path.read_bytes() for path in target.root.rglob("*") if path.is_file() and ".db" not in path.name
    }
    return rows(str(target.database)), files


def unread(home: Home) -> None:
    """Nothing reads it but people, or what writes it before."""


#: kind of file -> the files, and what readers get from them. In the order of the page.
KINDS: dict[str, tuple[str, Callable[[Home], Any]]] = {
    "model file": ("home/models/blobs/sha256/*/*", lambda home: None),
    "directory of a model": ("home/models/repositories/*/m/*/*", lambda home: None),
    "database": ("home/amphitrite.db", database),
    "journal of the database": ("home/amphitrite.db-wal", database),
    "backup": ("backup.tar", restored),
    "authority": ("home/certificates/ca.*", tls),
    "certificate and key": ("home/certificates/server.*", tls),
    "bundle of roots": ("home/certificates/bundle.pem", tls),
    "credential": ("home/credentials/*", credentials.ensure),
    "server.json": ("home/server.json", lambda home: home_directory.read_state(home.root)),
    "record of an instance": (
        "home/instances/*/instance.json",
        lambda home: [instance_records.load(path) for path in home.instances.iterdir()],
    ),
    "record of a process": (
        "home/dataplane/[ae]*.json",
        lambda home: [processes.read(path) for path in sorted(home.dataplane.glob("[ae]*.json"))],
    ),
    "saved routing table": (
        "home/dataplane/routing-table.json",
        lambda home: saved_table.load(home.dataplane / "routing-table.json"),
    ),
    "log": ("home/logs/*", unread),
}


@pytest.fixture
def chosen(tmp_path: Path) -> Settings:
    made = fill(tmp_path / "home")
    backup.backup(made, tmp_path / "backup.tar")
    (made.home.logs / "agent.log").write_text("a line\n")
    return made


def read(reader: Callable[[Home], Any], home: Home) -> tuple[bool, Any]:
    """Whether it could be read, and what was read."""
    try:
        return True, reader(home)
    except Error as error:
        assert error.hint or error.message
        return False, None


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "journal of the database"])
def test_a_changed_byte_is_detected_or_harmless(chosen: Settings, kind: str, tmp_path: Path) -> None:
    pattern, reader = KINDS[kind]
    home, choose = chosen.home, random.Random(kind)
    files = sorted(path for path in tmp_path.glob(pattern) if path.is_file())
    good, wanted = read(reader, home)
    assert files and good and program.check(chosen).damaged == []
    copies = tmp_path / "copies"
    shutil.copytree(home.root, copies)
    detected = 0
    for _ in range(FLIPS):
        file = choose.choice(files)
        before, mode = file.read_bytes(), file.stat().st_mode
        at, bit = choose.randrange(len(before)), 1 << choose.randrange(8)
        overwrite(file, before[:at] + bytes([before[at] ^ bit]) + before[at + 1 :])
        found = bool(program.check(chosen).damaged)
        could, value = read(reader, home)
        assert found or not could or value == wanted or kind == "credential", f"byte {at} of {file}, bit {bit}"
        detected += found or not could
        overwrite(file, before)
        file.chmod(mode)
        for written in (*home.certificates.iterdir(), *home.root.glob("amphitrite.db*")):
            if (original := copies / written.relative_to(home.root)).exists():
                overwrite(written, original.read_bytes())
            else:
                written.unlink()
    assert program.check(chosen).damaged == []
    assert detected == FLIPS or kind in MAYBE_HARMLESS, f"{detected} of {FLIPS}"


# cryptography warns of a serial number whose sign has changed.
@pytest.mark.filterwarnings("ignore:Parsed a serial number:UserWarning")
@pytest.mark.parametrize("name", ["ca.pem", "ca.key", "server.pem", "server.key"])
def test_no_byte_of_a_certificate_or_key_is_more_than_wrong(tmp_path: Path, name: str) -> None:
    """Parsers of certificates have many ways to fail."""
    home = Home(tmp_path)
    home.create()
    certificates.ensure(home, ["127.0.0.1"], time.time())
    (home.certificates / "bundle.pem").unlink()
    path, choose = home.certificates / name, random.Random(name)
    data = path.read_bytes()
    for at in range(len(data)):
        overwrite(path, flipped(data, at, choose))
        assert all(len(one) == 3 for one in certificates.problems(home))


def overwrite(path: Path, data: bytes) -> None:
    path.chmod(0o600)
    path.write_bytes(data)


@pytest.mark.parametrize("at_s", ["header", "frames"])
def test_a_changed_byte_of_the_journal(tmp_path: Path, at_s: str) -> None:
    """As a process that was killed leaves it. Only of the last change it cannot be told whether it
    was damaged or cut off, as it may be by a power failure."""
    chosen = fill(tmp_path / "home")
    log = chosen.home.database.with_name("amphitrite.db-wal")
    store, states = open_store(chosen.database_url), []
    for number in range(6):
        store.put_endpoint({"name": f"ep{number + 10}"}, **NEW)
        copies = [
            (path, path.read_bytes()) for path in chosen.home.root.glob("amphitrite.db*") if "shm" not in path.name
        ]
        states.append(copies)
    store.close()

    def put(files: list[tuple[Path, bytes]]) -> None:
        for path in chosen.home.root.glob("amphitrite.db*"):
            path.unlink()
        for path, data in files:
            path.write_bytes(data)

    tolerated = []
    for state in states[-2:]:
        put(state)
        tolerated.append(database(chosen.home))
    choose, size = random.Random(at_s), len(dict(states[-1])[log])
    for _ in range(FLIPS):
        at = choose.randrange(32) if at_s == "header" else choose.randrange(32, size)
        put([(path, flipped(data, at, choose) if path == log else data) for path, data in states[-1]])
        found = program.check(chosen).damaged
        assert found or database(chosen.home) in tolerated, f"byte {at} of {size}"


def flipped(data: bytes, at: int, choose: random.Random) -> bytes:
    return data[:at] + bytes([data[at] ^ 1 << choose.randrange(8)]) + data[at + 1 :]


def test_the_page_has_a_row_for_each_kind() -> None:
    text = PAGE.read_text(encoding="utf-8")
    section = text[text.index("## A changed byte") :].partition("\n## ")[0]
    table = section[section.index("| kind of file |") :].partition("\n\n")[0]
    named = re.findall(r"^\| ([a-z][^|]*?) \|", table, re.MULTILINE)
    assert named == ["kind of file", *KINDS, *ELSEWHERE]
    for test in ELSEWHERE.values():
        file, _, name = test.partition("::")
        assert f"def {name}(" in (PAGE.parents[1] / "tests" / file).read_text(encoding="utf-8")
