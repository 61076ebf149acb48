"""The Envoy beside the agent: started, adopted, watched, started again, stopped gracefully.

Decides when Envoy runs. It is a session of its own and outlives the agent. Must not know tables or the control plane.
"""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from amphitrite.dataplane import ports, processes
from amphitrite.dataplane.admin import Admin
from amphitrite.dataplane.departure import Departure, depart
from amphitrite.dataplane.envoy_output import Output
from amphitrite.dataplane.files import write_private
from amphitrite.dataplane.log import log
from amphitrite.dataplane.processes import ProcessRecord
from amphitrite.dataplane.routing import Address
from amphitrite.schemas.errors import Error

_START_WITHIN_S = 20.0
#: Whoever dies sooner than this after its start is started again with a growing pause.
_SETTLED_S = 10.0
_PAUSE_S = (0.0, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0)
_TERMINATE_WITHIN_S = 5.0
#: What requests in flight are given when Envoy must be replaced because its settings have changed.
_REPLACE_GRACE_S = 10.0
_POLL_S = 0.02
#: The flag that chooses another port for clients, for the text of a refusal.
_PORT_OPTION = "--scoring-port"


@dataclass(frozen=True, slots=True)
class Launch:
    """What is run. ``record``: the file that says which process it is; ``output``: where Envoy's own log goes."""

    executable: Path
    bootstrap: Mapping[str, Any]
    bootstrap_file: Path
    record: Path
    output: Output
    listen: Address
    workers: int

    @property
    def digest(self) -> str:
        """Tells an Envoy that was started with the same settings from one that was not."""
        content = json.dumps([str(self.executable), self.bootstrap], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]


class EnvoyProcess:
    """One Envoy. ``begin`` and ``stop`` belong to the main thread, ``watch`` is a thread of its own, ``fit`` may be
    called from any."""

    def __init__(self, launch: Launch, admin: Admin) -> None:
        self._launch = launch
        self._admin = admin
        self._stopping = threading.Event()
        self._record: ProcessRecord | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self._fitness = threading.Lock()
        self._fit = True
        self.version: str | None = None

    @property
    def pid(self) -> int | None:
        return self._record.pid if self._record is not None else None

    @property
    def children(self) -> tuple[int, ...]:
        """Processes of ours whose end is waited for."""
        return () if self._child is None else (self._child.pid,)

    def begin(self) -> bool:
        """Take over the Envoy of an earlier agent (True) or start one. Raises Error when it cannot be started."""
        found = processes.read(self._launch.record)
        if found is not None and processes.alive(found):
            if self._adopt(found):
                return True
            log("info", "replacing envoy: it has other settings, or is leaving", pid=found.pid)
            self._record = found
            self._end(found, Departure(grace_s=_REPLACE_GRACE_S))
        self._start()
        return False

    def fit(self, fit: bool) -> None:
        """Whether health checks of the listener may pass: not while Envoy has no table to serve by."""
        with self._fitness:
            changed, self._fit = fit != self._fit, fit
            if changed:
                self._show_fitness()

    def _show_fitness(self) -> None:
        try:
            if self._fit:
                self._admin.pass_health()
            else:
                self._admin.fail_health()
        except Error as error:  # it is told again when it has been started again
            log("warning", "envoy does not hear", error=error.message)

    def watch(self) -> None:
        """Start Envoy again whenever it ends, until ``stop``."""
        failures = 0
        while not self._stopping.is_set():
            code = self._wait()
            if self._stopping.is_set():
                return
            failures = failures + 1 if time.monotonic() - self._started < _SETTLED_S else 0
            log("error", "envoy ended", pid=self.pid, exit_code=code, reason=self._launch.output.complaint())
            while not self._stopping.wait(_PAUSE_S[min(failures, len(_PAUSE_S) - 1)]):
                try:
                    self._start()
                    break
                except Error as error:
                    failures += 1
                    log("error", "envoy cannot be started", error=error.message)

    def stop(self, departure: Departure) -> None:
        """Send clients away, wait until nothing is in flight, then end Envoy."""
        self._stopping.set()
        record = self._record
        if record is not None and processes.alive(record):
            self._end(record, departure)

    def _adopt(self, found: ProcessRecord) -> bool:
        try:
            same = bool(json.loads(self._launch.record.read_text())["digest"] == self._launch.digest)
            # One that a former agent has sent its clients away from would take no new ones.
            same = same and not self._admin.leaving()
            self.version = self._admin.version() if same else None
        except (OSError, ValueError, KeyError, Error):
            return False
        if same:
            self._record, self._started = found, time.monotonic()
            log("info", "adopted envoy", pid=found.pid)
        return same

    def _start(self) -> None:
        launch = self._launch
        _require_free(launch.listen)
        write_private(launch.bootstrap_file, json.dumps(launch.bootstrap, indent=1))
        command = [
            str(launch.executable), "--config-path", str(launch.bootstrap_file), "--disable-hot-restart",
            "--concurrency", str(launch.workers), *launch.output.arguments, "--log-level", "info",
            # A refused resource is logged by the agent, which leaves out what is secret in it.
            "--component-log-level", "config:error,upstream:warn",
            "--drain-time-s", "5", "--drain-strategy", "immediate", "--file-flush-interval-msec", "1000",
        ]  # fmt: skip
        self._child = launch.output.start(command)
        self._started = time.monotonic()
        try:
            self._record = processes.of(self._child.pid)
            processes.write(launch.record, self._record, digest=launch.digest)
            self.version = self._await_admin(self._child)
        except ProcessLookupError:
            self._child.wait()
            raise self._failed(self._child.returncode) from None
        with self._fitness:
            if not self._fit:
                self._show_fitness()
        log("info", "started envoy", pid=self.pid, version=self.version)

    def _await_admin(self, child: subprocess.Popen[bytes]) -> str:
        """Envoy answers there only once it has its listener's socket."""
        while True:
            try:
                return self._admin.version()
            except Error:
                if child.poll() is not None:
                    raise self._failed(child.returncode) from None
                if time.monotonic() - self._started > _START_WITHIN_S:
                    child.kill()
                    child.wait()
                    raise
                time.sleep(_POLL_S)

    def _failed(self, code: int) -> Error:
        reason = self._launch.output.complaint()
        if "Address already in use" in reason:
            return _port_in_use(self._launch.listen)
        return Error("RuntimeUnavailable", f"Envoy ended at its start with exit code {code}: {reason}")

    def _wait(self) -> int | None:
        """Until the process has ended; its exit code when it was our child."""
        if self._child is not None:
            return self._child.wait()
        if self._record is not None and processes.alive(self._record):
            try:
                psutil.Process(self._record.pid).wait()
            except psutil.NoSuchProcess:
                return None
        return None

    def _end(self, record: ProcessRecord, departure: Departure) -> None:
        log("info", "draining envoy", pid=record.pid, linger_s=departure.linger_s, grace_s=departure.grace_s)
        depart(self._admin, departure)
        processes.send_signal(record, signal.SIGTERM)
        deadline = time.monotonic() + _TERMINATE_WITHIN_S
        while processes.alive(record):
            if time.monotonic() > deadline:
                processes.send_signal(record, signal.SIGKILL)
            time.sleep(_POLL_S)
        self._launch.record.unlink(missing_ok=True)
        log("info", "envoy ended", pid=record.pid)


def _require_free(address: Address) -> None:
    """Raise Error(PortInUse). Envoy would say so too, but only after it has loaded everything else."""
    try:
        ports.require_free(address.host, address.port, _PORT_OPTION)
    except Error as error:
        # In the words in which Envoy's own refusal is told, too.
        raise _port_in_use(address) if error.code == "PortInUse" else error from error.__cause__


def _port_in_use(address: Address) -> Error:
    return Error(
        "PortInUse",
        f"{address.host}:{address.port} is in use by another program",
        target=f"{address.host}:{address.port}",
        hint=f"choose another port with {_PORT_OPTION}, or stop that program",
    )
