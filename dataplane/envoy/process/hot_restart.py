"""How one Envoy follows another on the same port.

Decides what becomes of the Envoys that a starting agent finds: adopted as it is, taken over from by a new process
(Envoy's hot restart: the new one is handed the listening socket, so that no connection is refused, and the old one
answers what it has begun), or replaced. Which Envoys there are is read off the processes themselves, so that an agent
that died between two lines of a takeover leaves nothing that is not found again. Must not start any.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import psutil

from amphitrite.dataplane.machine import processes
from amphitrite.dataplane.machine.processes import ProcessRecord

#: In the environment of every Envoy of ours: ``<launch digest>.<epoch>``; the epoch is empty without hot restart.
MARKER = "AMPHITRITE_ENVOY"
_SHARED_MEMORY = Path("/dev/shm")
#: Envoy multiplies a base id by ten, and writes what is more than 31 bits with twenty digits into its sockets' names.
_BASE_IDS = 2**31 // 10 - 1
_SOCKETS = "hot"
#: The longest name of a socket in an agent's ``run``: their paths have a bound.
LONGEST_SOCKET = f"{_SOCKETS}_udp_parent_{2**31 - 1}"


@dataclass(frozen=True, slots=True)
class Running:
    """One Envoy. ``digest``: of what it was started with; ``epoch``: how many it followed, None: none may follow it."""

    process: ProcessRecord
    digest: str
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """What an Envoy says of itself. ``hot_restart_version``: which processes may follow it; None: none."""

    live: bool
    leaving: bool
    hot_restart_version: str | None


class Choice(Enum):
    """START: nothing runs. ADOPT the newest. TAKE_OVER: a new one follows it. REPLACE: end all, then start."""

    START = "start"
    ADOPT = "adopt"
    TAKE_OVER = "take over"
    REPLACE = "replace"


def choose(found: Sequence[Running], stage: Stage | None, wanted: str, hot_restart_version: str | None) -> Choice:
    """``found``: from the oldest to the newest, of which ``stage`` is (None: it does not answer). ``wanted``: the
    digest of what should run, with this ``hot_restart_version`` (None: it cannot follow any)."""
    if not found:
        return Choice.START
    # One that a former agent has sent its clients away from would take no new ones.
    if stage is None or stage.leaving:
        return Choice.REPLACE
    if found[-1].digest == wanted:
        return Choice.ADOPT
    can = found[-1].epoch is not None and hot_restart_version is not None
    if can and stage.live and stage.hot_restart_version == hot_restart_version:
        return Choice.TAKE_OVER
    return Choice.REPLACE


def find(bootstrap_file: Path, record: Path) -> tuple[Running, ...]:
    """The Envoys that were started with this file, from the oldest to the newest. ``record`` says of the process which
    it names what it was started with; the marker says it of one that nobody came to write down."""
    recorded = processes.read(record)
    found = []
    for process in psutil.process_iter(["cmdline"]):
        # Only Envoy itself, not the process that waits for it: that one has Envoy's command line behind its own.
        if (process.info["cmdline"] or [])[1:3] != ["--config-path", str(bootstrap_file)]:
            continue
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            running = _running(process, record if recorded and recorded.pid == process.pid else None)
            if processes.alive(running.process):
                found.append(running)
    if recorded is not None and processes.alive(recorded) and recorded.pid not in {r.process.pid for r in found}:
        found.append(Running(recorded, _noted(record)))
    return tuple(sorted(found, key=lambda r: (-1 if r.epoch is None else r.epoch, r.process.create_time)))


def _running(process: psutil.Process, record: Path | None) -> Running:
    digest, _, epoch = process.environ().get(MARKER, "").partition(".")
    if record is not None:
        digest = _noted(record)
    return Running(processes.of(process.pid), digest, int(epoch) if epoch.isdecimal() else None)


def _noted(record: Path) -> str:
    try:
        return str(json.loads(record.read_text(encoding="utf-8"))["digest"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def end_all(bootstrap_file: Path, record: Path, within_s: float) -> None:
    """End the Envoys of a state that no agent looks after, the newest first: one whose predecessor has gone fails."""
    for one in reversed(find(bootstrap_file, record)):
        processes.end(one.process, within_s)
    record.unlink(missing_ok=True)


def clients(running: Sequence[Running], port: int) -> int:
    """Connections of clients that these Envoys, which listen on ``port`` or did, still have."""
    count = 0
    for one in running:
        with contextlib.suppress(psutil.Error):
            if processes.alive(one.process):
                connections = psutil.Process(one.process.pid).net_connections("tcp")
                count += sum(c.status == psutil.CONN_ESTABLISHED and c.laddr.port == port for c in connections)
    return count


@dataclass(frozen=True, slots=True)
class HotRestart:
    """The rendezvous of the Envoys of one state: sockets in ``run``, locks in shared memory under a number of ours."""

    run: Path
    base_id: int

    @classmethod
    def of(cls, state: Path, run: Path) -> HotRestart:
        digest = hashlib.sha256(f"{os.getuid()}:{state}".encode()).hexdigest()
        return cls(run, int(digest[:12], 16) % _BASE_IDS)

    @staticmethod
    def possible() -> bool:
        """Not for the first process of a container, whose pod is replaced as a whole, nor without shared memory."""
        return not processes.first() and os.access(_SHARED_MEMORY, os.W_OK | os.X_OK)

    def arguments(self, epoch: int, parent_ends_after_s: float) -> list[str]:
        """For Envoy's command line. The one before it ends so long after this one has taken over."""
        return [
            *("--restart-epoch", str(epoch), "--base-id", str(self.base_id)),
            *("--socket-path", str(self.run / _SOCKETS), "--socket-mode", "600"),
            *("--parent-shutdown-time-s", str(max(1, round(parent_ends_after_s)))),
        ]

    def clear(self) -> None:
        """Remove what Envoys leave behind. Only when none of them runs."""
        for path in self.run.glob(f"{_SOCKETS}_*"):
            if re.fullmatch(rf"{_SOCKETS}_(udp_)?(parent|child)_\d+", path.name):
                path.unlink(missing_ok=True)
        (_SHARED_MEMORY / f"envoy_shared_memory_{self.base_id * 10}").unlink(missing_ok=True)
