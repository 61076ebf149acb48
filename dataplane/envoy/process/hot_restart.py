"""How one Envoy replaces another on the same port.

Decides what happens to the Envoys that a starting agent finds: adopt the newest, let a new process
replace it by Envoy's hot restart, or end them all and start anew. In a hot restart the new process
takes over the listening socket, so that no connection is refused, and the old one finishes its
requests. Source: Envoy's page "Hot restart" (architecture overview, operations).

The state is read from the processes themselves. An agent that dies between any two steps leaves
nothing that the next one cannot find. Must not start a process.
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

#: In the environment of each of our Envoys: ``<launch digest>.<epoch>``. The epoch is empty without
#: hot restart.
MARKER_VARIABLE = "AMPHITRITE_ENVOY"
_SHARED_MEMORY = Path("/dev/shm")
#: Envoy multiplies the base id by ten. From 2**31 on it writes twenty digits into the names of its
#: sockets.
_BASE_IDS = 2**31 // 10 - 1
_SOCKET_PREFIX = "hot"
#: The longest socket name in an agent's ``run`` directory: the kernel limits the length of the
#: path.
LONGEST_SOCKET_NAME = f"{_SOCKET_PREFIX}_udp_parent_{2**31 - 1}"


@dataclass(frozen=True, slots=True)
class RunningEnvoy:
    """One Envoy process. ``digest``: of what it was started with. ``epoch``: how many Envoys it has
    replaced, one after the other; None: it runs without hot restart."""

    process: ProcessRecord
    digest: str
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class ServerState:
    """What an Envoy reports about itself. ``hot_restart_version``: a process of the same version
    may replace it; None: it runs without hot restart."""

    live: bool
    draining: bool
    hot_restart_version: str | None


class StartDecision(Enum):
    """START: nothing runs. ADOPT the newest. HOT_RESTART: a new process replaces the newest.
    REPLACE: end all, then start one."""

    START = "start"
    ADOPT = "adopt"
    HOT_RESTART = "hot restart"
    REPLACE = "replace"


def decide_start(
    running: Sequence[RunningEnvoy], state: ServerState | None, digest: str, hot_restart_version: str | None
) -> StartDecision:
    """What to do about the Envoys that run.

    ``running``: from the oldest to the newest. ``state``: of the newest; None: it does not answer.
    ``digest``, ``hot_restart_version``: of the Envoy that should run; None: it cannot replace
    another.
    """
    if not running:
        return StartDecision.START
    # An Envoy that an earlier agent has begun to drain would take no new clients.
    if state is None or state.draining:
        return StartDecision.REPLACE
    if running[-1].digest == digest:
        return StartDecision.ADOPT
    both_support_it = running[-1].epoch is not None and hot_restart_version is not None
    if both_support_it and state.live and state.hot_restart_version == hot_restart_version:
        return StartDecision.HOT_RESTART
    return StartDecision.REPLACE


def find_running(bootstrap_file: Path, record: Path) -> tuple[RunningEnvoy, ...]:
    """The Envoys that were started with this file, from the oldest to the newest.

    ``record`` holds the digest of the process that it names. The marker in the environment gives it
    for a process that no agent has recorded.
    """
    recorded = processes.read(record)
    running = []
    for process in psutil.process_iter(["cmdline"]):
        # The process that waits for Envoy has Envoy's command line behind its own: it is left out.
        if (process.info["cmdline"] or [])[1:3] != ["--config-path", str(bootstrap_file)]:
            continue
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            envoy = _running_envoy(process, record if recorded and recorded.pid == process.pid else None)
            if processes.alive(envoy.process):
                running.append(envoy)
    if recorded is not None and processes.alive(recorded) and recorded.pid not in {r.process.pid for r in running}:
        running.append(RunningEnvoy(recorded, _recorded_digest(record)))
    return tuple(sorted(running, key=lambda r: (-1 if r.epoch is None else r.epoch, r.process.create_time)))


def _running_envoy(process: psutil.Process, record: Path | None) -> RunningEnvoy:
    digest, _, epoch = process.environ().get(MARKER_VARIABLE, "").partition(".")
    if record is not None:
        digest = _recorded_digest(record)
    return RunningEnvoy(processes.of(process.pid), digest, int(epoch) if epoch.isdecimal() else None)


def _recorded_digest(record: Path) -> str:
    try:
        return str(json.loads(record.read_text(encoding="utf-8"))["digest"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def terminate_all(bootstrap_file: Path, record: Path, within_s: float) -> None:
    """End the Envoys that no agent supervises, the newest first: an Envoy whose predecessor has
    gone fails. Each is killed after ``within_s``."""
    for envoy in reversed(find_running(bootstrap_file, record)):
        processes.end(envoy.process, within_s)
    record.unlink(missing_ok=True)


def client_connections(envoys: Sequence[RunningEnvoy], port: int) -> int:
    """How many connections of clients on ``port`` these Envoys still have."""
    count = 0
    for envoy in envoys:
        with contextlib.suppress(psutil.Error):
            if processes.alive(envoy.process):
                connections = psutil.Process(envoy.process.pid).net_connections("tcp")
                count += sum(c.status == psutil.CONN_ESTABLISHED and c.laddr.port == port for c in connections)
    return count


@dataclass(frozen=True, slots=True)
class HotRestart:
    """Where the Envoys of one agent meet: sockets in ``run``, and shared memory named by
    ``base_id``."""

    run: Path
    base_id: int

    @classmethod
    def of(cls, state: Path, run: Path) -> HotRestart:
        digest = hashlib.sha256(f"{os.getuid()}:{state}".encode()).hexdigest()
        return cls(run, int(digest[:12], 16) % _BASE_IDS)

    @staticmethod
    def supported() -> bool:
        """Not for the first process of a container, whose pod is replaced as a whole, and not
        without shared memory."""
        return not processes.is_init() and os.access(_SHARED_MEMORY, os.W_OK | os.X_OK)

    def arguments(self, epoch: int, parent_shutdown_s: float) -> list[str]:
        """For Envoy's command line. The predecessor ends ``parent_shutdown_s`` after this Envoy has
        taken over."""
        return [
            *("--restart-epoch", str(epoch), "--base-id", str(self.base_id)),
            *("--socket-path", str(self.run / _SOCKET_PREFIX), "--socket-mode", "600"),
            *("--parent-shutdown-time-s", str(max(1, round(parent_shutdown_s)))),
        ]

    def remove_files(self) -> None:
        """Remove the sockets and the shared memory. Call it only when none of these Envoys runs."""
        for path in self.run.glob(f"{_SOCKET_PREFIX}_*"):
            if re.fullmatch(rf"{_SOCKET_PREFIX}_(udp_)?(parent|child)_\d+", path.name):
                path.unlink(missing_ok=True)
        (_SHARED_MEMORY / f"envoy_shared_memory_{self.base_id * 10}").unlink(missing_ok=True)
