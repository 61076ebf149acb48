"""The Envoy beside the agent: started, adopted, hot-restarted, supervised, stopped.

Carries out what ``hot_restart`` decides. Envoy runs in a session of its own and outlives the agent.
Must not know routing tables or the control plane.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Sequence

import psutil

from amphitrite.dataplane.envoy.process import binary, hot_restart
from amphitrite.dataplane.envoy.process.admin_client import AdminClient
from amphitrite.dataplane.envoy.process.graceful_shutdown import drain
from amphitrite.dataplane.envoy.process.hot_restart import RunningEnvoy, ServerState, StartDecision
from amphitrite.dataplane.envoy.process.launch_command import Launch
from amphitrite.dataplane.machine import ports, processes
from amphitrite.dataplane.machine.atomic_files import write_private
from amphitrite.dataplane.machine.json_log import log
from amphitrite.dataplane.machine.processes import ProcessRecord
from amphitrite.dataplane.proxy.proxy import GracefulShutdown
from amphitrite.schemas.errors import Error

_START_TIMEOUT_S = 20.0
#: An Envoy that ends sooner than this after its start is started again with a growing pause.
_STABLE_AFTER_S = 10.0
_RESTART_PAUSES_S = (0.0, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0)
_TERMINATE_WITHIN_S = 5.0
#: The time for requests in flight when Envoy is replaced because its settings have changed.
_REPLACE_GRACE_S = 10.0
#: How long a running Envoy may take to answer the first question about its state.
_ANSWER_TIMEOUT_S = 5.0
#: How long an Envoy that is already being replaced may delay the next hot restart.
_PREDECESSOR_TIMEOUT_S = 10.0
_POLL_S = 0.02
#: The server's option that chooses another port for clients, for the hint of an error.
_PORT_OPTION = "--scoring-port"


class EnvoyProcess:
    """One Envoy and, for a while, the one that it replaces.

    ``start`` and ``stop`` belong to the main thread, ``supervise`` is a thread of its own, all else
    may be called from any thread. ``on_hot_restart`` is called with the id of a launch as soon as
    that Envoy alone is to get resources.
    """

    def __init__(self, launch: Launch, admin: AdminClient, on_hot_restart: Callable[[str], None]) -> None:
        self._launch = launch
        self._admin = admin
        self._on_hot_restart = on_hot_restart
        self._predecessor_grace_s = 1.0
        self._stopping = threading.Event()
        self._record: ProcessRecord | None = None
        self._predecessors: tuple[RunningEnvoy, ...] = ()
        self._child: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self._readiness_lock = threading.Lock()
        self._ready = True
        self.version: str | None = None

    @property
    def pid(self) -> int | None:
        return self._record.pid if self._record is not None else None

    @property
    def children(self) -> tuple[int, ...]:
        """The child processes that this object waits for."""
        return () if self._child is None else (self._child.pid,)

    def predecessor_has_clients(self) -> bool:
        """Whether clients still have connections to an Envoy that is being replaced."""
        predecessors = self._predecessors
        return bool(predecessors) and hot_restart.client_connections(predecessors, self._launch.listen.port) > 0

    def start(self, predecessor_grace_s: float) -> StartDecision:
        """Adopt the Envoy of an earlier agent, hot-restart it, or start a new one.

        ``predecessor_grace_s``: how long requests in flight on a replaced Envoy may take. Raises
        Error when Envoy cannot be started; an Envoy that ran before goes on then.
        """
        launch, self._predecessor_grace_s = self._launch, predecessor_grace_s
        running = hot_restart.find_running(launch.bootstrap_file, launch.record)
        version = binary.hot_restart_version(launch.executable) if launch.hot_restart and running else None
        state = self._wait_for_state() if running else None
        decision = hot_restart.decide_start(running, state, launch.digest, version)
        if decision is StartDecision.ADOPT:
            self._adopt(running)
        elif decision is StartDecision.HOT_RESTART:
            self._hot_restart(running)
        else:
            if decision is StartDecision.REPLACE:
                self._end_running(running)
            self._start_first()
        return decision

    def _wait_for_state(self) -> ServerState | None:
        """The state of the newest Envoy; one that has just been started answers soon. None: it does
        not answer."""
        deadline = time.monotonic() + _ANSWER_TIMEOUT_S
        while True:
            try:
                return self._admin.server_state()
            except Error:
                if time.monotonic() > deadline:
                    return None
                time.sleep(_POLL_S)

    def set_ready(self, ready: bool) -> None:
        """Whether the health check of the listener may pass: not while Envoy has no table in
        force."""
        with self._readiness_lock:
            changed, self._ready = ready != self._ready, ready
            if changed:
                self._apply_readiness()

    def _apply_readiness(self) -> None:
        try:
            if self._ready:
                self._admin.pass_health_checks()
            else:
                self._admin.fail_health_checks()
        except Error as error:  # It is tried again after the next start.
            log("warning", "envoy's health check could not be changed", ready=self._ready, error=error.message)

    def supervise(self) -> None:
        """Start Envoy again whenever it ends, until ``stop``."""
        failures = 0
        while not self._stopping.is_set():
            code = self._wait()
            if self._stopping.is_set():
                return
            failures = failures + 1 if time.monotonic() - self._started < _STABLE_AFTER_S else 0
            log("error", "envoy ended", pid=self.pid, exit_code=code, reason=self._launch.output.last_error())
            self._end_predecessors()
            while not self._stopping.wait(_RESTART_PAUSES_S[min(failures, len(_RESTART_PAUSES_S) - 1)]):
                try:
                    self._start_first()
                    break
                except Error as error:
                    failures += 1
                    log("error", "envoy cannot be started", error=error.message)

    def stop(self, shutdown: GracefulShutdown) -> None:
        """Drain Envoy, then end it and its predecessors."""
        self._stopping.set()
        record = self._record
        if record is not None and processes.alive(record):
            self._drain_and_end(record, shutdown)
        self._end_predecessors()
        if self._launch.hot_restart:
            self._launch.hot_restart.remove_files()

    def _adopt(self, running: Sequence[RunningEnvoy]) -> None:
        *predecessors, newest = running
        self.version = self._admin.version()
        self._record, self._predecessors, self._started = newest.process, tuple(predecessors), time.monotonic()
        # The agent that started it may have ended before it wrote the record.
        processes.write(self._launch.record, newest.process, digest=newest.digest)
        if predecessors:
            self._on_hot_restart(self._launch.id(newest.epoch or 0))
        log("info", "adopted envoy", pid=newest.process.pid)

    def _hot_restart(self, running: Sequence[RunningEnvoy]) -> None:
        """Start an Envoy that replaces the newest. That one finishes its requests and ends by
        itself."""
        *predecessors, newest = running
        deadline = time.monotonic() + _PREDECESSOR_TIMEOUT_S
        while hot_restart.client_connections(predecessors, self._launch.listen.port) and time.monotonic() < deadline:
            # Only two Envoys can run: the next start cuts off the requests of the oldest.
            time.sleep(_POLL_S)
        log("info", "hot restart of envoy: its settings have changed", pid=newest.process.pid)
        self._predecessors = (newest,)
        self._spawn((newest.epoch or 0) + 1)

    def _end_running(self, running: Sequence[RunningEnvoy]) -> None:
        *predecessors, newest = running
        self._predecessors = tuple(predecessors)
        log("info", "replacing envoy: its settings have changed, or it is draining", pid=newest.process.pid)
        self._record = newest.process
        self._drain_and_end(newest.process, GracefulShutdown(grace_s=_REPLACE_GRACE_S))
        self._end_predecessors()

    def _start_first(self) -> None:
        # Envoy would report it too, but only after it has loaded everything else.
        ports.require_free(self._launch.listen.host, self._launch.listen.port, _PORT_OPTION)
        self._spawn(0)

    def _spawn(self, epoch: int) -> None:
        launch = self._launch
        write_private(launch.bootstrap_file, launch.bootstrap_text(epoch))
        if epoch and (reason := binary.validation_error(launch.executable, launch.bootstrap_file)):
            # Before the running Envoy hears of it: after that there is no way back.
            raise Error("RuntimeUnavailable", f"Envoy would not start: {reason}")
        self._started = time.monotonic()
        try:
            self._record, self._child = launch.start(epoch, self._predecessor_grace_s)
            processes.write(launch.record, self._record, digest=launch.digest)
            if epoch:
                self._on_hot_restart(launch.id(epoch))
            self.version = self._wait_for_admin(self._record, epoch)
        except ProcessLookupError:
            raise self._start_failure() from None
        with self._readiness_lock:
            if not self._ready:
                self._apply_readiness()
        log("info", "started envoy", pid=self.pid, version=self.version, epoch=epoch)

    def _wait_for_admin(self, record: ProcessRecord, epoch: int) -> str:
        """The version of the new Envoy. Its admin interface answers once it has the socket of its
        listener and the predecessor has released this one."""
        while True:
            try:
                if self._admin.epoch() == epoch:
                    return self._admin.version()
                raise Error("RuntimeUnavailable", "the running Envoy does not hand over to the new one")
            except Error:
                if not processes.alive(record):
                    raise self._start_failure() from None
                if time.monotonic() - self._started > _START_TIMEOUT_S:
                    processes.end(record, 0.0)
                    raise
                time.sleep(_POLL_S)

    def _start_failure(self) -> Error:
        code = f" with exit code {self._child.wait()}" if self._child is not None else ""
        reason = self._launch.output.last_error()
        if "Address already in use" in reason:
            return ports.in_use(self._launch.listen.host, self._launch.listen.port, _PORT_OPTION)
        return Error("RuntimeUnavailable", f"Envoy ended at its start{code}: {reason}")

    def _wait(self) -> int | None:
        """Until the process has ended. The exit code, where it is our child."""
        if self._child is not None:
            return self._child.wait()
        if self._record is not None and processes.alive(self._record):
            try:
                psutil.Process(self._record.pid).wait()
            except psutil.NoSuchProcess:
                return None
        return None

    def _drain_and_end(self, record: ProcessRecord, shutdown: GracefulShutdown) -> None:
        log("info", "draining envoy", pid=record.pid, linger_s=shutdown.linger_s, grace_s=shutdown.grace_s)
        drain(self._admin, shutdown)
        processes.end(record, _TERMINATE_WITHIN_S)
        self._launch.record.unlink(missing_ok=True)
        log("info", "envoy ended", pid=record.pid)

    def _end_predecessors(self) -> None:
        """Only after their successor has ended: it asks its predecessor for values, and ends when
        it gets no answer."""
        for envoy in self._predecessors:
            processes.end(envoy.process, _TERMINATE_WITHIN_S)
        self._predecessors = ()
