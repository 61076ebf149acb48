"""The Envoy beside the agent: started, adopted, followed by a newer one, watched, started again, stopped gracefully.

Carries out what ``succession`` decides. Envoy is a session of its own and outlives the agent. Must not know tables or
the control plane.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Sequence

import psutil

from amphitrite.dataplane.envoy.process import binary, hot_restart
from amphitrite.dataplane.envoy.process.admin_client import Admin
from amphitrite.dataplane.envoy.process.graceful_shutdown import Departure, depart
from amphitrite.dataplane.envoy.process.hot_restart import Choice, Running, Stage
from amphitrite.dataplane.envoy.process.launch_command import Launch
from amphitrite.dataplane.machine import ports, processes
from amphitrite.dataplane.machine.atomic_files import write_private
from amphitrite.dataplane.machine.json_log import log
from amphitrite.dataplane.machine.processes import ProcessRecord
from amphitrite.dataplane.table.routing_table import Address
from amphitrite.schemas.errors import Error

_START_WITHIN_S = 20.0
#: Whoever dies sooner than this after its start is started again with a growing pause.
_SETTLED_S = 10.0
_PAUSE_S = (0.0, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0)
_TERMINATE_WITHIN_S = 5.0
#: What requests in flight are given when Envoy must be replaced because its settings have changed.
_REPLACE_GRACE_S = 10.0
#: How long one that was found is asked what it is about, and one that leaves is waited for before the next takeover.
_ANSWER_WITHIN_S = 5.0
_FORMER_WITHIN_S = 10.0
_POLL_S = 0.02
#: The flag that chooses another port for clients, for the text of a refusal.
_PORT_OPTION = "--scoring-port"


class EnvoyProcess:
    """One Envoy, and for a while the one that it has taken over from. ``begin`` and ``stop`` belong to the main thread,
    ``watch`` is a thread of its own, all else may be called from any.

    ``on_takeover`` is called with a launch's name as soon as that Envoy alone is to be told anything. ``grace_s``: how
    long requests in flight on an Envoy that another has taken over from may take, in seconds.
    """

    def __init__(self, launch: Launch, admin: Admin, on_takeover: Callable[[str], None], grace_s: float) -> None:
        self._launch = launch
        self._admin = admin
        self._on_takeover = on_takeover
        self._grace_s = grace_s
        self._stopping = threading.Event()
        self._record: ProcessRecord | None = None
        self._former: tuple[Running, ...] = ()
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

    def former_busy(self) -> bool:
        """Whether clients still have connections to an Envoy that another has taken over from."""
        return bool(self._former) and hot_restart.clients(self._former, self._launch.listen.port) > 0

    def begin(self) -> Choice:
        """Take over the Envoy of an earlier agent, follow it with a new one, or start one. Raises Error when it cannot
        be started; one that runs goes on then."""
        launch = self._launch
        found = hot_restart.find(launch.bootstrap_file, launch.record)
        ours = binary.hot_restart_version(launch.executable) if launch.hot_restart and found else None
        choice = hot_restart.choose(found, self._stage() if found else None, launch.digest, ours)
        if choice is Choice.ADOPT:
            self._adopt(found)
        elif choice is Choice.TAKE_OVER:
            self._take_over(found)
        else:
            if choice is Choice.REPLACE:
                self._replace(found)
            self._start()
        return choice

    def _stage(self) -> Stage | None:
        """What the newest says; one that has just been started answers soon."""
        deadline = time.monotonic() + _ANSWER_WITHIN_S
        while True:
            try:
                return self._admin.stage()
            except Error:
                if time.monotonic() > deadline:
                    return None
                time.sleep(_POLL_S)

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
            self._end_former()
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
        self._end_former()
        if self._launch.hot_restart:
            self._launch.hot_restart.clear()

    def _adopt(self, found: Sequence[Running]) -> None:
        *former, newest = found
        self.version = self._admin.version()
        self._record, self._former, self._started = newest.process, tuple(former), time.monotonic()
        # The agent that started it may have ended before it could write this down.
        processes.write(self._launch.record, newest.process, digest=newest.digest)
        if former:
            self._on_takeover(self._launch.name(newest.epoch or 0))
        log("info", "adopted envoy", pid=newest.process.pid)

    def _take_over(self, found: Sequence[Running]) -> None:
        """A new Envoy follows the newest, which then answers what it has begun and ends by itself."""
        *former, newest = found
        deadline = time.monotonic() + _FORMER_WITHIN_S
        while hot_restart.clients(former, self._launch.listen.port) and time.monotonic() < deadline:
            time.sleep(_POLL_S)  # its requests would be cut off: only two can be there at once
        log("info", "another envoy takes over: it has other settings", pid=newest.process.pid)
        self._former = (newest,)
        self._spawn((newest.epoch or 0) + 1)

    def _replace(self, found: Sequence[Running]) -> None:
        *former, newest = found
        self._former = tuple(former)
        log("info", "replacing envoy: it has other settings, or is leaving", pid=newest.process.pid)
        self._record = newest.process
        self._end(newest.process, Departure(grace_s=_REPLACE_GRACE_S))
        self._end_former()

    def _start(self) -> None:
        _require_free(self._launch.listen)
        self._spawn(0)

    def _spawn(self, epoch: int) -> None:
        launch = self._launch
        write_private(launch.bootstrap_file, launch.file(epoch))
        if epoch and (reason := binary.refusal(launch.executable, launch.bootstrap_file)):
            # Before the one that runs is told anything: it would be too late to go back.
            raise Error("RuntimeUnavailable", f"Envoy would not start: {reason}")
        self._started = time.monotonic()
        try:
            self._record, self._child = launch.start(epoch, self._grace_s)
            processes.write(launch.record, self._record, digest=launch.digest)
            if epoch:
                self._on_takeover(launch.name(epoch))
            self.version = self._await_admin(self._record, epoch)
        except ProcessLookupError:
            raise self._failed() from None
        with self._fitness:
            if not self._fit:
                self._show_fitness()
        log("info", "started envoy", pid=self.pid, version=self.version, epoch=epoch)

    def _await_admin(self, record: ProcessRecord, epoch: int) -> str:
        """Envoy answers there only once it has its listener's socket, or the one before it has given this one up."""
        while True:
            try:
                if self._admin.epoch() == epoch:
                    return self._admin.version()
                raise Error("RuntimeUnavailable", "Envoy does not give way to the one that follows it")
            except Error:
                if not processes.alive(record):
                    raise self._failed() from None
                if time.monotonic() - self._started > _START_WITHIN_S:
                    processes.end(record, 0.0)
                    raise
                time.sleep(_POLL_S)

    def _failed(self) -> Error:
        code = f" with exit code {self._child.wait()}" if self._child is not None else ""
        reason = self._launch.output.complaint()
        if "Address already in use" in reason:
            return _port_in_use(self._launch.listen)
        return Error("RuntimeUnavailable", f"Envoy ended at its start{code}: {reason}")

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
        processes.end(record, _TERMINATE_WITHIN_S)
        self._launch.record.unlink(missing_ok=True)
        log("info", "envoy ended", pid=record.pid)

    def _end_former(self) -> None:
        """Only after the one that follows: that one asks its predecessor things, and ends when it gets no answer."""
        for one in self._former:
            processes.end(one.process, _TERMINATE_WITHIN_S)
        self._former = ()


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
