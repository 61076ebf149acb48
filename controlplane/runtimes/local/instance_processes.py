"""The processes of one instance: started, found, waited for, killed, and cleaned up after.

Decides that an instance is a session of its own, and that all its processes have a marker in their
environment, by which they are found without a record. Must not know probes, log contents or plans.
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
    """Distinguishes the homes on one machine."""
    return hashlib.sha256(os.fsencode(home.resolve())).hexdigest()[:12]


def marker(home: Path, instance_id: str) -> str:
    return f"{home_digest(home)}/{instance_id}"


def shm_prefix(home: Path, instance_id: str) -> str:
    """The prefix of the instance's regions in /dev/shm. The dot ends the id: ``x-1`` must not match
    ``x-11``."""
    return f"amphitrite-{home_digest(home)}-{instance_id}."


def spawn(argv: Sequence[str], environment: Mapping[str, str], directory: Path, log: int) -> ProcessRecord:
    """Starts a session leader that outlives this process. Raises OSError if it cannot be
    executed."""
    process = subprocess.Popen(
        list(argv),
        env=dict(environment),
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    # A control plane waits for it by pid, so Popen must neither warn nor wait.
    process.returncode = 0
    return processes.of(process.pid)


def reap(pid: int) -> int | None:
    """The exit code of a process that has exited, negative for a signal; None if it is not our
    child."""
    try:
        waited, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return None
    return os.waitstatus_to_exitcode(status) if waited else None


def dead_children(process: ProcessRecord) -> frozenset[int]:
    """Direct children that have exited without their parent waiting for them."""
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
    """pid -> marker of all processes of this user whose marker ``matches``, session
    leaders first."""
    leaders_first = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
            is_leader = os.getsid(int(entry.name)) == int(entry.name)
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # It has exited, or belongs to another user.
        for variable in variables:
            name, _, value = variable.partition(b"=")
            if name == MARKER.encode() and matches(value.decode("utf-8", "replace")):
                leaders_first.append((not is_leader, int(entry.name), value.decode("utf-8", "replace")))
    return {pid: value for _, pid, value in sorted(leaders_first)}


def find_leader(marker_value: str) -> ProcessRecord | None:
    """The session leader with this marker."""
    for pid in find(lambda value: value == marker_value):
        with contextlib.suppress(OSError):
            if os.getsid(pid) == pid:
                return processes.of(pid)
    return None


def kill_all(marker_value: str) -> None:
    """Kills all processes with this marker, in any process group, and waits until they
    have exited."""
    pids = find(lambda value: value == marker_value)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_for_exit(pids, 5.0)


def wait_for_exit(pids: Iterable[int], timeout_s: float) -> bool:
    """Waits until all of these processes, children or not, have exited. False if some have not."""
    poll, deadline, pending = select.poll(), time.monotonic() + timeout_s, set()
    try:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                descriptor = os.pidfd_open(pid)
                pending.add(descriptor)
                poll.register(descriptor, select.POLLIN)
        while pending and (left := deadline - time.monotonic()) > 0:
            for descriptor, _ in poll.poll(left * 1000):
                poll.unregister(descriptor)
                pending.remove(descriptor)
                os.close(descriptor)
        return not pending
    finally:
        for descriptor in pending:
            os.close(descriptor)


def remove_shared_memory(prefixes: Iterable[str]) -> None:
    """Removes the regions that killed processes have left in /dev/shm."""
    names = tuple(prefixes)
    if not names or not _SHARED_MEMORY.is_dir():
        return
    for path in _SHARED_MEMORY.iterdir():
        if path.name.startswith(names):
            path.unlink(missing_ok=True)
