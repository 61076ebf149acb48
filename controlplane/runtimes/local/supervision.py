"""Supervision of one instance, in one thread: it probes it, detects its exit, stops it and updates
its record.

Decides the phase of the instance from facts. Must not know what is started (``launch`` does) or
other instances. It treats the record of a living process as if it had started the process itself.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from amphitrite.controlplane.core.desired.resources import Probe
from amphitrite.controlplane.runtimes import exit_reasons
from amphitrite.controlplane.runtimes.local import (
    cpu_instances,
    engines,
    instance_logs,
    instance_processes,
    instance_records,
    isolated_start,
    listeners,
    socket_directories,
)
from amphitrite.controlplane.runtimes.local.instance_limits import NO_LIMITS, InstanceLimits
from amphitrite.controlplane.runtimes.local.instance_records import InstanceRecord
from amphitrite.controlplane.runtimes.local.probe_counts import ProbeState, step
from amphitrite.dataplane.machine import own_faults, processes
from amphitrite.dataplane.triton import http_api
from amphitrite.schemas.errors import Error

log = logging.getLogger(__name__)

#: Seconds between probes of a starting instance. Triton listens only once its models are loaded, so
#: an earlier probe costs nothing.
STARTING_PERIOD_S = 0.1
ROTATION_PERIOD_S = 10.0
#: Seconds between looks at what an instance uses.
LIMITS_PERIOD_S = 1.0
#: Seconds that a Python stub may be dead while a model is loaded. Triton waits forever for a stub
#: that died while reading the model, for example out of memory, so the supervisor must detect it.
DEAD_STUB_S = 5.0
#: Seconds until the next attempt after supervision itself has failed: for example, this process has
#: no descriptor left.
FAULT_PAUSE_S = 1.0
#: How often somebody else may listen in its place before the instance counts as failed.
MAX_RESTARTS = 3

#: Written to the log before each start, so that earlier output is not attributed to this one.
START_MARK = "amphitrite: starting on "

#: Returns the record with its process started; raises OSError.
Launch = Callable[[InstanceRecord], InstanceRecord]


class Supervision:
    """``changed`` is called, without a lock held, after each change of the record."""

    def __init__(
        self,
        home: Path,
        directory: Path,
        record: InstanceRecord,
        launch: Launch,
        changed: Callable[[], None],
        limits: InstanceLimits = NO_LIMITS,
    ) -> None:
        self._directory, self._launch, self._changed, self._limits = directory, launch, changed, limits
        self._marker = instance_processes.marker(home, record.id)
        self._shm_prefix = instance_processes.shm_prefix(home, record.id)
        self._record, self._lock = record, threading.Lock()
        self._wake, self._closing = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK), False
        self._readiness = ProbeState(passing=record.phase == "ready")
        self._liveness = ProbeState(passing=record.live)
        self._dead_since: dict[int, float] = {}
        self._kill_reason: str | None = None
        self._met_stranger = self._told_of_stranger = False
        self._thread = threading.Thread(target=self._run, name=f"instance {record.id}", daemon=True)
        self._thread.start()

    @property
    def record(self) -> InstanceRecord:
        return self._record

    def stop(self, grace_s: float) -> None:
        """Asks the process to exit and kills it after ``grace_s``. A later call can only shorten
        that time."""
        with self._lock:
            if self._record.phase == "exited":
                return
            stop_by = min(time.time() + grace_s, self._record.stop_by or float("inf"))
        # Written before the signal, so that an exit in between is known to be requested.
        self._update(phase="stopping", stop_by=stop_by)
        self._signal(signal.SIGTERM)
        os.eventfd_write(self._wake, 1)

    def close(self) -> None:
        """Ends the thread. The instance keeps running."""
        self._closing = True
        os.eventfd_write(self._wake, 1)
        self._thread.join()
        os.close(self._wake)

    def _run(self) -> None:
        while not self._closing:
            try:
                if self._supervise_process():
                    continue
                self._handle_exit()
                if self._record.phase == "exited":
                    return
            except Exception:
                # Whatever it is, the instance must not be left alone.
                log.exception("supervision of %s failed; it goes on", self._record.id)
                self._pause()

    def _pause(self) -> None:
        """Waits FAULT_PAUSE_S, or until ``close``, without a new descriptor."""
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        poll.poll(FAULT_PAUSE_S * 1000)

    def _supervise_process(self) -> bool:
        """Supervises one process until it exits (False) or the thread is to end (True)."""
        process = self._record.process
        if process is None or not processes.alive(process):
            return False
        try:
            pidfd = os.pidfd_open(process.pid)
        except ProcessLookupError:
            return False
        if self._record.stop_by is not None:
            # The writer of the record may have died before the signal.
            self._signal(signal.SIGTERM)
        try:
            poll = select.poll()
            poll.register(pidfd, select.POLLIN)
            poll.register(self._wake, select.POLLIN)
            next_readiness = self._record.started_at + self._record.readiness.initial_delay
            next_liveness = next_rotation = next_limits = 0.0
            while not self._closing:
                now, record = time.time(), self._record
                if record.stop_by is not None:
                    if now >= record.stop_by:
                        self._kill()
                    wake_at = record.stop_by if now < record.stop_by else now + 1.0
                else:
                    if now >= next_readiness:
                        next_readiness = now + self._probe(self._probe_readiness, record)
                    if now >= next_liveness and record.ready_at is not None:
                        next_liveness = now + self._probe(self._probe_liveness, record)
                    wake_at = next_readiness if record.ready_at is None else min(next_readiness, next_liveness)
                if now >= next_limits:
                    next_limits = now + LIMITS_PERIOD_S
                    self._check_limits(record)
                if now >= next_rotation:
                    next_rotation = now + ROTATION_PERIOD_S
                    instance_logs.rotate(self._directory)
                wait_s = max(0.0, min(wake_at, next_rotation, next_limits) - time.time())
                events = dict(poll.poll(wait_s * 1000))
                if pidfd in events:
                    return False
                if self._wake in events:
                    with contextlib.suppress(BlockingIOError):
                        os.eventfd_read(self._wake)
        finally:
            os.close(pidfd)
        return True

    @staticmethod
    def _probe(probe: Callable[[InstanceRecord], float], record: InstanceRecord) -> float:
        """The seconds until the next probe. A probe that failed for a fault of this process is no
        result: it counts neither as passed nor as failed."""
        try:
            return probe(record)
        except Exception as exc:
            known = own_faults.is_own(exc)
            log.warning("cannot probe %s, which says nothing about it: %s", record.id, exc, exc_info=not known)
            return FAULT_PAUSE_S

    def _probe_readiness(self, record: InstanceRecord) -> float:
        """Probes once and records the result. Returns the seconds until the next probe."""
        probe, models = record.readiness, record.workload.model.model_names
        starting = record.ready_at is None
        self._met_stranger = False  # The liveness probe may have met it.
        server = http_api.version(record.address, probe.timeout, trusts=self._trusts) if starting else None
        succeeded = not starting or server is not None
        succeeded = succeeded and self._ready(record, self._trusts) and self._serves_grpc(record)
        if self._met_stranger:
            # Whatever the threshold is: no request must go there.
            self._readiness = ProbeState(passing=False)
            if not self._told_of_stranger:
                log.warning("another process listens in place of %s; it gets no requests", record.id)
        self._told_of_stranger = self._met_stranger
        self._readiness = step(self._readiness, succeeded, probe)
        if starting:
            self._check_python_stubs(record)
        passing = self._readiness.passing
        if passing and starting and server is not None:
            text = instance_logs.end(self._directory)
            engine = engines.describe(server, record.address, models, text, probe.timeout)
            notes = (
                engines.note(record.workload, engine),
                cpu_instances.note(self._directory),
                isolated_start.read_note(self._directory),
            )
            note = "; ".join(one for one in notes if one) or None
            self._update(phase="ready", ready_at=time.time(), engine=engine, note=note)
        elif not starting and passing != (record.phase == "ready"):
            self._update(phase="ready" if passing else "unready")
        return STARTING_PERIOD_S if self._record.ready_at is None else _period(probe)

    def _trusts(self, connection: socket.socket) -> bool:
        """Whether the connection leads to this instance, and not to another process in its
        place."""
        process = self._record.process
        trusted = process is not None and listeners.owns_peer(process, connection)
        self._met_stranger |= not trusted
        return trusted

    def _serves_grpc(self, record: InstanceRecord) -> bool:
        """Whether this instance listens for gRPC, if it is to."""
        process, address = record.process, record.address
        owned = process is not None and listeners.owns_grpc(process, address, record.readiness.timeout)
        self._met_stranger |= owned is False
        return owned is True

    @staticmethod
    def _ready(record: InstanceRecord, trusts: http_api.Trusts) -> bool:
        """The environment's readiness route if there is one, otherwise the server and each of its
        models."""
        workload, timeout_s = record.workload, record.readiness.timeout
        if workload.container is not None:
            return http_api.all_ok(record.address, [workload.container.readiness_path], timeout_s, trusts=trusts)
        return http_api.ready(record.address, workload.model.model_names, timeout_s, trusts=trusts)

    def _check_python_stubs(self, record: InstanceRecord) -> None:
        now = time.time()
        dead = instance_processes.dead_children(record.process) if record.process else frozenset()
        self._dead_since = {pid: self._dead_since.get(pid, now) for pid in dead}
        if any(now - since > DEAD_STUB_S for since in self._dead_since.values()):
            self._kill_reason = exit_reasons.DEAD_STUB
            self._kill()

    def _check_limits(self, record: InstanceRecord) -> None:
        """The kernel may have killed one process of several; the others would serve half a
        model."""
        if why := self._limits.exceeded(record.id, record.workload.instance_type, record.process):
            self._kill_reason = why
            self._kill()

    def _probe_liveness(self, record: InstanceRecord) -> float:
        """As for readiness. Liveness counts from the first readiness on; the plan limits the time
        until then."""
        probe = record.liveness
        begin = record.started_at + probe.initial_delay
        if time.time() < begin:
            return begin - time.time()
        container = record.workload.container
        route = {"path": container.liveness_path} if container is not None else {}
        live = http_api.live(record.address, probe.timeout, **route, trusts=self._trusts)
        self._liveness = step(self._liveness, live, probe)
        if self._liveness.passing != record.live:
            self._update(live=self._liveness.passing)
        return _period(probe)

    def _handle_exit(self) -> None:
        """Cleans up after the process, and records why it exited or restarts it on other
        sockets."""
        record = self._record
        instance_processes.kill_all(self._marker)
        instance_processes.remove_shared_memory([self._shm_prefix])
        if record.sockets is not None:
            socket_directories.remove(Path(record.sockets))
        text = instance_logs.end(self._directory).rpartition(START_MARK)[2]
        # After what may fail and be tried again: the exit code can be read only once.
        exit_code = instance_processes.reap(record.process.pid) if record.process else None
        why = None
        if record.stop_by is None:
            if record.ready_at is None and exit_reasons.port_taken(text) and record.restarts < MAX_RESTARTS:
                with contextlib.suppress(OSError, Error):
                    self._update(**_process_fields(self._launch(replace(record, restarts=record.restarts + 1))))
                    return
            self._kill_reason = self._kill_reason or self._limits.exceeded(
                record.id, record.workload.instance_type, None
            )
            why = self._kill_reason or exit_reasons.reason(text, exit_code, was_ready=record.ready_at is not None)
        self._limits.remove(record.id)
        self._update(phase="exited", exited_at=time.time(), exit_code=exit_code, reason=why)

    def _signal(self, number: int) -> None:
        if self._record.process is not None:
            processes.send_signal(self._record.process, number)

    def _kill(self) -> None:
        """Kills the process group while its leader lives, so that the group id is certainly its
        own."""
        process = self._record.process
        if process is not None and processes.alive(process):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def _update(self, **changes: Any) -> None:
        with self._lock:
            if self._record.stop_by is not None and changes.get("phase") in ("ready", "unready"):
                return  # It was stopped during the probe.
            self._record = replace(self._record, **changes)
            try:
                instance_records.save(self._directory, self._record)
            except OSError:
                # A full disk must not end supervision.
                log.exception("cannot save the record of %s", self._record.id)
        self._changed()


def _process_fields(record: InstanceRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in ("process", "port", "grpc_port", "sockets", "restarts")}


def _period(probe: Probe) -> float:
    return float(max(1, probe.period))
