"""The processes of one instance: started, recognised, awaited, ended, and their traces removed.

Decides that an instance is a session of its own and that all its processes carry a marker in their environment, by
which they are found when no record names them. Must not know probes, logs' contents or plans.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import psutil

from amphitrite.dataplane.machine import processes
from amphitrite.dataplane.machine.processes import ProcessRecord

MARKER = "AMPHITRITE_INSTANCE"
_SHARED_MEMORY = Path("/dev/shm")


def home_digest(home: Path) -> str:
    """Tells the homes on one machine apart."""
    return hashlib.sha256(os.fsencode(home.resolve())).hexdigest()[:12]


def marker(home: Path, instance_id: str) -> str:
    return f"{home_digest(home)}/{instance_id}"


def shm_prefix(home: Path, instance_id: str) -> str:
    """How the instance's regions in /dev/shm begin. The dot ends the id: ``x-1`` must not match ``x-11``."""
    return f"amphitrite-{home_digest(home)}-{instance_id}."


def spawn(argv: Sequence[str], environment: Mapping[str, str], directory: Path, log: int) -> ProcessRecord:
    """Start a session leader that outlives us. Raises OSError when it cannot be executed."""
    process = subprocess.Popen(
        list(argv),
        env=dict(environment),
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    process.returncode = 0  # It is awaited by its pid, perhaps by another control plane: Popen must not warn or wait.
    return processes.of(process.pid)


def reap(pid: int) -> int | None:
    """The exit code of a process that has ended: negative for a signal; None when it is not a child of ours."""
    try:
        waited, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return None
    return os.waitstatus_to_exitcode(status) if waited else None


def dead_children(process: ProcessRecord) -> frozenset[int]:
    """Direct children that have ended without their parent having taken notice."""
    try:
        children = psutil.Process(process.pid).children()
    except psutil.NoSuchProcess:
        return frozenset()
    dead = set()
    for child in children:
        with contextlib.suppress(psutil.NoSuchProcess):
            if child.status() == psutil.STATUS_ZOMBIE:
                dead.add(child.pid)
    return frozenset(dead)


def find(matches: Callable[[str], bool]) -> dict[int, str]:
    """pid -> marker of every process of this user whose marker ``matches``, leaders of their session first."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
            leads = os.getsid(int(entry.name)) == int(entry.name)
        except OSError:
            continue  # Gone in the meantime, or somebody else's.
        for variable in variables:
            name, _, value = variable.partition(b"=")
            if name == MARKER.encode() and matches(value.decode("utf-8", "replace")):
                found.append((not leads, int(entry.name), value.decode("utf-8", "replace")))
    return {pid: value for _, pid, value in sorted(found)}


def find_leader(wanted: str) -> ProcessRecord | None:
    """The session leader with this marker."""
    for pid in find(lambda value: value == wanted):
        with contextlib.suppress(OSError):
            if os.getsid(pid) == pid:
                return processes.of(pid)
    return None


def kill_all(wanted: str) -> None:
    """Kill every process with this marker, of whichever process group, and wait until they are gone."""
    pids = find(lambda value: value == wanted)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    await_end(pids, 5.0)


def await_end(pids: Iterable[int], timeout_s: float) -> bool:
    """Wait until all of these processes, children of ours or not, have ended; False when some have not."""
    poll, deadline, waiting = select.poll(), time.monotonic() + timeout_s, set()
    try:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                descriptor = os.pidfd_open(pid)
                waiting.add(descriptor)
                poll.register(descriptor, select.POLLIN)
        while waiting and (left := deadline - time.monotonic()) > 0:
            for descriptor, _ in poll.poll(left * 1000):
                poll.unregister(descriptor)
                waiting.remove(descriptor)
                os.close(descriptor)
        return not waiting
    finally:
        for descriptor in waiting:
            os.close(descriptor)


def remove_shared_memory(prefixes: Iterable[str]) -> None:
    """Remove the regions that killed processes have left in /dev/shm."""
    wanted = tuple(prefixes)
    if not wanted or not _SHARED_MEMORY.is_dir():
        return
    for path in _SHARED_MEMORY.iterdir():
        if path.name.startswith(wanted):
            path.unlink(missing_ok=True)
