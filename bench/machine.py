"""The machine of a benchmark: packages, compiled helpers, environments, cores, processes.

Decides how something is installed and that whatever is started is stopped, also when a benchmark
fails. Must not know what is measured. What cannot be had raises ``Unavailable`` with the reason.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from bench.product import ROOT, Unavailable
from deploy.lock import requirements

BUILD = ROOT / "build" / "bench"
ENVIRONMENTS = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "amphitrite-bench"
_NATIVE = Path(__file__).parent / "native"
_INSTALL_WITHIN_S = 600


def facts() -> dict[str, Any]:
    """What the figures depend on most."""
    model = "unknown"
    if (cpuinfo := Path("/proc/cpuinfo")).exists():
        names = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    return {
        "cpu": model,
        "cores": len(cores()),
        "memory_gb": round(psutil.virtual_memory().total / 1e9),
        "load_before": round(os.getloadavg()[0], 2),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def cores() -> list[int]:
    return sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else list(range(os.cpu_count() or 1))


def places() -> dict[str, list[int]]:
    """Cores for what is measured (``proxy``), who calls it (``client``) and whom it calls
    (``upstream``).

    The one that is measured has a core to itself as soon as there are two.
    """
    have = cores()
    if len(have) == 1:
        return {"proxy": have, "client": have, "upstream": have}
    if len(have) == 2:
        return {"proxy": have[1:], "client": have[:1], "upstream": have[:1]}
    return {"proxy": have[1:2], "client": have[2:3], "upstream": have[:1]}


@cache
def require(command: str, package: str | None = None) -> str:
    """The path of ``command``, from a Debian package if need be. Raises Unavailable where that
    cannot be."""
    package = package or command
    search = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
    if found := shutil.which(command, path=search):
        return found
    install(package, f"it needs {command}")
    if found := shutil.which(command, path=search):
        return found
    raise Unavailable(f"the package {package} has no {command}")


def install(package: str, why: str) -> None:
    if shutil.which("apt-get") is None or os.getuid() != 0:
        raise Unavailable(f"{why}; on Debian and Ubuntu: apt-get install {package}")
    print(f"$ apt-get install {package}", flush=True)
    # Debian starts a server as soon as it is installed; nothing here wants that one.
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    command = ["apt-get", "install", "-qq", "-y", "--no-install-recommends", package]
    for attempt in (1, 2):
        done = subprocess.run(command, stdout=subprocess.DEVNULL, env=quiet, check=False, timeout=_INSTALL_WITHIN_S)
        if done.returncode == 0:
            return
        if attempt == 1:
            subprocess.run(["apt-get", "update", "-qq"], stdout=subprocess.DEVNULL, check=False)
    raise Unavailable(f"{why}; apt-get could not install {package}")


@cache
def compiled(name: str, *libraries: str) -> str:
    """The program of ``native/<name>.c``, built anew when its source has changed."""
    source = _NATIVE / f"{name}.c"
    target = BUILD / f"{name}-{hashlib.sha256(source.read_bytes()).hexdigest()[:12]}"
    if not target.exists():
        compiler = require("cc", "gcc")
        BUILD.mkdir(parents=True, exist_ok=True)
        command = [compiler, "-O2", "-o", str(target), str(source), *(f"-l{library}" for library in libraries)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            install("libc6-dev", f"{name}.c does not compile")
            if libraries:
                install("libssl-dev", f"{name}.c does not compile")
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise Unavailable(f"{name}.c does not compile: {done.stderr.strip()[-500:]}")
    return str(target)


@cache
def environment(name: str) -> Path:
    """A virtual environment with the set ``bench-NAME`` of deploy/lock.txt, kept for the next time.
    Raises Unavailable."""
    locked = requirements(f"bench-{name}")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    key = hashlib.sha256(repr((locked, version)).encode()).hexdigest()[:8]
    target = ENVIRONMENTS / f"{name}-{key}"
    if (target / "complete").exists():
        return target
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is None:
        raise Unavailable("uv is missing: make .venv/.test")
    shutil.rmtree(target, ignore_errors=True)
    print(f"$ uv pip install: the set bench-{name} of deploy/lock.txt", flush=True)
    python = str(target / "bin" / "python")
    steps = [
        ([uv, "venv", "--quiet", "--python", sys.executable, str(target)], ""),
        ([uv, "pip", "install", "--quiet", "--python", python, "--require-hashes", "--no-deps", "-r", "-"], locked),
    ]
    try:
        for step, stdin in steps:
            done = subprocess.run(
                step, input=stdin, capture_output=True, text=True, timeout=_INSTALL_WITHIN_S, check=False
            )
            if done.returncode:
                raise Unavailable(f"{name} cannot be installed: {' '.join(done.stderr.split())[-300:]}")
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{name} was not installed within {_INSTALL_WITHIN_S} s") from None
    (target / "complete").touch()
    return target


def version_of(env: Path, package: str) -> str:
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.run([env / "bin" / "python", "-c", code], capture_output=True, text=True).stdout.strip()


def free_port() -> int:
    """A port on which nobody listens, below those that the kernel gives to outgoing connections:
    under load one of those is taken again before whoever is started can have it."""
    for port in random.sample(range(20_000, 32_000), 1_000):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise Unavailable("there is no free port")


def await_port(port: int, process: subprocess.Popen[bytes], log: Path, within_s: float = 30) -> None:
    """Until the process, or one that it has started, listens, and not somebody else there. Raises
    Unavailable with the end of ``log`` when it ends or takes too long."""
    deadline = time.monotonic() + within_s
    while not any(_listens(one, port) for one in tree(process.pid)):
        if process.poll() is not None or time.monotonic() > deadline:
            raise Unavailable(f"it did not start: {log.read_text(errors='replace').strip()[-400:]}")
        time.sleep(0.02)


def _listens(process: psutil.Process, port: int) -> bool:
    try:
        found = process.net_connections(kind="tcp")
    except psutil.Error:
        return False
    return any(c.status == psutil.CONN_LISTEN and c.laddr.port == port for c in found)


@contextlib.contextmanager
def running(
    command: Sequence[str | Path],
    log: Path,
    *,
    on: Sequence[int] = (),
    port: int | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    within_s: float = 30,
) -> Iterator[subprocess.Popen[bytes]]:
    """A process, and those it starts, for the length of the block: on these cores, listening on
    ``port``."""
    words = [str(word) for word in command]
    if on:
        words = ["taskset", "-c", ",".join(map(str, on)), *words]
    with log.open("ab") as output:
        process = subprocess.Popen(
            words, stdout=output, stderr=output, stdin=subprocess.DEVNULL, start_new_session=True, env=env, cwd=cwd
        )
    try:
        if port is not None:
            await_port(port, process, log, within_s)
        yield process
    finally:
        end(process)


def end(process: subprocess.Popen[bytes], within_s: float = 5) -> None:
    """SIGTERM to the whole session, then SIGKILL to what is left of it."""
    family = tree(process.pid)
    for signal_, patience in ((signal.SIGTERM, within_s), (signal.SIGKILL, within_s)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal_)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
        _, left = psutil.wait_procs(family, timeout=0 if signal_ is signal.SIGTERM else patience)
        for one in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.send_signal(signal_)


def tree(pid: int) -> list[psutil.Process]:
    """The process and all below it; those that end meanwhile are left out."""
    try:
        parent = psutil.Process(pid)
        return [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def cpu_seconds(pid: int) -> float:
    """User and system time so far of the process and those it has started."""
    total = 0.0
    for one in tree(pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = one.cpu_times()
            total += times.user + times.system
    return total


def memory_mb(pid: int, *, alone: bool = False) -> float:
    """Resident memory of the process and, unless ``alone``, of those it has started."""
    total = 0
    for one in tree(pid)[: 1 if alone else None]:
        with contextlib.suppress(psutil.NoSuchProcess):
            total += one.memory_info().rss
    return total / 1e6


def pin(pid: int, on: Sequence[int]) -> None:
    """Keep every thread of the process, and of those below it, on these cores; threads to come
    inherit it."""
    for one in tree(pid):
        for thread in one.threads():
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(thread.id, on)


def folder(parent: Path, name: str) -> Path:
    """A directory of its own for whoever is called ``name``."""
    made = parent / "".join(c if c.isalnum() else "-" for c in name)
    made.mkdir(parents=True, exist_ok=True)
    return made


def is_root() -> bool:
    return os.getuid() == 0
