"""The identity of a process: its pid and the time at which it started.

Decides how a process is recognised after our own restart, when it counts as alive, and the form of
its record on disk. A pid alone is not enough: it is used again after the process has ended. Must
not know what the process does.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from amphitrite.dataplane.machine.atomic_files import write_private
from amphitrite.schemas.sealed_json import seal, unseal

#: The most seconds by which two readings of one process's start time may differ. The kernel derives
#: the time of boot, to which it is relative, from the wall clock in whole seconds, and the wall
#: clock is adjusted while a machine runs.
_TOLERANCE_S = 2.0
_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """One process. ``create_time``: seconds since the epoch, as the kernel reports it."""

    pid: int
    create_time: float


def of(pid: int) -> ProcessRecord:
    """The record of a running process. Raises ProcessLookupError when there is none."""
    try:
        return ProcessRecord(pid, psutil.Process(pid).create_time())
    except psutil.NoSuchProcess as exc:
        raise ProcessLookupError(pid) from exc


def own() -> ProcessRecord:
    return of(os.getpid())


def alive(record: ProcessRecord) -> bool:
    """Whether this very process still runs. A zombie does not."""
    try:
        process = psutil.Process(record.pid)
        with process.oneshot():
            same = abs(process.create_time() - record.create_time) <= _TOLERANCE_S
            return same and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def send_signal(record: ProcessRecord, number: int = signal.SIGTERM) -> bool:
    """Send a signal to this very process. False: it has ended already."""
    if not alive(record):
        return False
    try:
        os.kill(record.pid, number)
    except ProcessLookupError:
        return False
    return True


def end(record: ProcessRecord, within_s: float) -> None:
    """Send SIGTERM to this very process, SIGKILL after ``within_s``, and return when it has
    ended."""
    send_signal(record, signal.SIGTERM)
    deadline = time.monotonic() + within_s
    while alive(record):
        if time.monotonic() > deadline:
            send_signal(record, signal.SIGKILL)
        time.sleep(_POLL_S)


def is_init() -> bool:
    """Whether this process is the first of its PID namespace. Then all others end with it, and it
    must reap orphans."""
    return os.getpid() == 1


def reap_orphans(own: Collection[int]) -> int:
    """Reap child processes that have ended, except those in ``own``, which somebody waits for.
    Returns their number."""
    reaped = 0
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return reaped
        if ended is None or ended.si_pid in own:
            return reaped
        os.waitpid(ended.si_pid, 0)
        reaped += 1


def read(path: Path) -> ProcessRecord | None:
    """The record in a JSON file with at least ``pid`` and ``create_time``. None: no such file, or
    another content."""
    try:
        value = unseal(path.read_text(encoding="utf-8"))
        return ProcessRecord(int(value["pid"]), float(value["create_time"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def write(path: Path, record: ProcessRecord, **more: Any) -> None:
    """Replace the file (0600, atomically) with the record and the values in ``more``."""
    write_private(path, seal(json.dumps({"pid": record.pid, "create_time": record.create_time, **more})))
