"""Instances as processes on this machine: each is a real Triton on two UNIX sockets.

Decides where an instance's files are, and that the next control plane adopts living instances. Must
not know plans, routing or the store. Each instance has a directory ``instances/<id>`` with its
record and log. The record is written before the process starts, and the process has a marker in its
environment, so a crash between the two loses nothing.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from amphitrite.controlplane.core.capacity.node_capacity import NodeCapacity
from amphitrite.controlplane.core.desired.compute_clusters import PodShape
from amphitrite.controlplane.core.desired.containers import MODEL_DIR
from amphitrite.controlplane.core.desired.resources import Probe, WorkloadSpec
from amphitrite.controlplane.core.observed.observations import Instance
from amphitrite.controlplane.core.observed.usage import InstanceUsage
from amphitrite.controlplane.core.storage.garbage import StoredItem
from amphitrite.controlplane.runtimes.isolation import control_groups
from amphitrite.controlplane.runtimes.isolation.launch import Launcher
from amphitrite.controlplane.runtimes.isolation.support import OFF, Isolation
from amphitrite.controlplane.runtimes.local import (
    cpu_instances,
    engines,
    instance_logs,
    instance_processes,
    instance_records,
    instance_storage,
    instance_usage,
    isolated_start,
    model_copies,
    model_directories,
    socket_directories,
)
from amphitrite.controlplane.runtimes.local.instance_limits import InstanceLimits
from amphitrite.controlplane.runtimes.local.instance_records import InstanceRecord
from amphitrite.controlplane.runtimes.local.isolated_start import NOTHING_MORE, Place, Surroundings
from amphitrite.controlplane.runtimes.local.supervision import START_MARK, Supervision
from amphitrite.controlplane.runtimes.log_text import previous_attempts, render
from amphitrite.controlplane.runtimes.runtime import LogQuery
from amphitrite.controlplane.settings.home import Home
from amphitrite.dataplane.triton import backend_directory, command_line, installation
from amphitrite.dataplane.triton.command_line import GRPC_RESTRICTED, HTTP_RESTRICTED, MAX_INPUT_SIZE, Options
from amphitrite.dataplane.triton.installation import Installation
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key

#: The text instead of the log of a container that downloads models.
_NO_INITIALIZER = (
    "Models are read in place from this server's store: nothing is downloaded before an instance starts.\n"
)


class LocalRuntime:
    """Implements ``runtimes.runtime.Runtime``.

    ``repositories``: returns the directory of a model digest. ``machine``: the environment
    variables of this machine. ``isolation``: whether instances are isolated; ``surroundings``:
    what isolated ones see of the machine. ``limits``: whether an instance gets no more than its
    type has.
    """

    name = "local"

    def __init__(
        self,
        home: Home,
        repositories: Callable[[str], Path],
        *,
        machine: Mapping[str, str] = os.environ,
        max_input_bytes: int = 100 * 1024 * 1024,
        isolation: Isolation = OFF,
        surroundings: Surroundings = NOTHING_MORE,
        limits: bool = False,
    ) -> None:
        self._isolation, self._surroundings = isolation, surroundings
        self._limits = InstanceLimits(control_groups.find(_groups_name(home)) if limits else None)
        self._home, self._repositories, self._machine = home, repositories, machine
        self._max_input_bytes = max_input_bytes
        self._lock = threading.Lock()
        self._wakes: list[Callable[[], None]] = []
        self._triton: tuple[Installation, Path, frozenset[str]] | None = None
        self._exited: dict[str, InstanceRecord] = {}
        self._supervised: dict[str, Supervision] = {}
        self._launcher = Launcher()
        self._adopt()
        self._prepare_launcher()

    def observe(self) -> tuple[Instance, ...]:
        with self._lock:
            records = self._records()
        return tuple(records[instance_id].observed() for instance_id in sorted(records))

    def usage(self) -> tuple[InstanceUsage, ...]:
        """What the instances that are ready have used."""
        with self._lock:
            records = self._records()
        return instance_usage.of_ready(records.values(), time.time())

    def unknown(self) -> frozenset[str]:
        return frozenset()

    def start(
        self,
        workload: WorkloadSpec,
        slot: int,
        attempt: int,
        readiness: Probe,
        liveness: Probe,
        request_timeout_s: float = 5.0,
    ) -> None:
        instance_id = f"{workload.name}-{slot}-{attempt}"
        with self._lock:
            if instance_id in self._supervised or instance_id in self._exited:
                return
            self._find_triton()
            self._repositories(workload.model.digest)
        directory = self._directory(instance_id)
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as exc:
            raise Error("RuntimeUnavailable", f"cannot start Triton: {exc}") from exc
        with contextlib.suppress(OSError):  # It is tried again below.
            self._model_files(workload, directory)  # Without the lock, since it may copy gigabytes.
        with self._lock:
            notes = [one for one in (engines.note(workload), self._isolation.note) if one]
            record = InstanceRecord(
                instance_id, workload, slot, attempt, readiness, liveness, time.time(), note="; ".join(notes) or None
            )
            try:
                isolated_start.write_note(directory, self._isolation)
                for note in notes:
                    instance_logs.append(directory, f"amphitrite: {note}")
                self._supervise(self._launch(record))
            except OSError as exc:
                self._exited[instance_id] = self._not_started(record, exc)
        self._notify()

    def _not_started(self, record: InstanceRecord, cause: OSError) -> InstanceRecord:
        """The record of an instance that has no process. Raises Error RuntimeUnavailable if it
        cannot be saved, as on a full disk: other deployments are not concerned."""
        reason = f"cannot start Triton: {cause}"
        record = replace(record, phase="exited", exited_at=time.time(), reason=reason)
        try:
            instance_records.save(self._directory(record.id), record)
        except OSError as exc:
            raise Error("RuntimeUnavailable", reason) from exc
        return record

    def stop(self, instance_id: str, grace_s: float) -> None:
        if supervision := self._supervised.get(instance_id):
            supervision.stop(grace_s)

    def forget(self, instance_id: str) -> None:
        with self._lock:
            supervision = self._supervised.get(instance_id)
            if supervision is not None and supervision.record.phase == "exited":
                del self._supervised[instance_id]
            elif self._exited.pop(instance_id, None) is None:
                return
            shutil.rmtree(self._directory(instance_id), ignore_errors=True)
        if supervision is not None:
            supervision.close()
        self._notify()

    def logs(self, endpoint: str, deployment: str, query: LogQuery) -> str:
        with self._lock:
            owner = (key(endpoint), key(deployment))
            records = [r.observed() for r in self._records().values()]
        instances = [i for i in records if (i.workload.endpoint, i.workload.deployment) == owner]
        if query.container == "storage-initializer":
            return _NO_INITIALIZER if instances else ""
        if query.previous:
            instances = previous_attempts(instances, lambda one: (one.workload.name, one.slot))
        since = None if query.since_s is None else time.time() - query.since_s
        return render([(i, instance_logs.tail(self._directory(i.id), query.tail, since)) for i in instances])

    def capacity(self, compute: str) -> tuple[NodeCapacity, ...] | None:
        """None: this machine has no nodes."""
        return None

    def demand(self, workload: WorkloadSpec, shape: PodShape) -> PodShape | None:
        """None: instances share the machine; nothing is counted."""
        return None

    def stored(self) -> tuple[StoredItem, ...]:
        # Listed before the records are read: an instance that starts meanwhile has its record then.
        names = instance_storage.instance_names(self._home.instances)
        with self._lock:
            return self._stored(names)

    def discard(self, item: StoredItem) -> bool:
        # With the lock no instance begins to need it.
        with self._lock:
            now = self._stored([item.name] if item.kind == "instance" else [])
            found = next((one for one in now if (one.kind, one.name) == (item.kind, item.name)), item)
            if found.needed:
                return False
            parents = {"instance": self._home.instances, "backends": self._backends, "build": Path()}
            return instance_storage.remove(parents[item.kind] / item.name)

    def _stored(self, names: Iterable[str]) -> tuple[StoredItem, ...]:
        records = self._records()
        pids = [record.process.pid for record in records.values() if record.process and record.phase != "exited"]
        current = None if self._triton is None else self._triton[1]
        return (
            *instance_storage.instance_items(self._home.instances, names, records),
            *instance_storage.backend_items(self._backends, current, pids),
            *instance_storage.build_items(self._machine),
        )

    @property
    def _backends(self) -> Path:
        return self._home.root / instance_storage.BACKENDS

    def watch(self, wake: Callable[[], None]) -> None:
        self._wakes.append(wake)

    def close(self) -> None:
        with self._lock:
            supervised, self._supervised = self._supervised, {}
            self._exited |= {instance_id: s.record for instance_id, s in supervised.items()}
        for supervision in supervised.values():
            supervision.close()
        self._launcher.close()
        self._limits.remove_all([one for one, record in self._exited.items() if record.phase != "exited"])

    def _records(self) -> dict[str, InstanceRecord]:
        return {**self._exited, **{instance_id: s.record for instance_id, s in self._supervised.items()}}

    def _directory(self, instance_id: str) -> Path:
        return self._home.instances / instance_id

    def _notify(self) -> None:
        for wake in tuple(self._wakes):
            wake()

    def _supervise(self, record: InstanceRecord) -> None:
        directory = self._directory(record.id)
        self._supervised[record.id] = Supervision(
            self._home.root, directory, record, self._launch, self._changed, self._limits
        )

    def _adopt(self) -> None:
        """Continues with the living instances and records of an earlier control plane, and removes
        the rest."""
        records = {record.id: record for record in instance_records.load_all(self._home.instances)}
        prefix = f"{instance_processes.home_digest(self._home.root)}/"
        for marker in set(instance_processes.find(lambda value: value.startswith(prefix)).values()):
            if marker.removeprefix(prefix) not in records:
                instance_processes.kill_all(marker)  # It has no record, so it cannot be managed.
                orphan = instance_processes.shm_prefix(self._home.root, marker.removeprefix(prefix))
                instance_processes.remove_shared_memory([orphan])
        if self._home.instances.is_dir():
            for path in self._home.instances.iterdir():
                if path.is_dir() and path.name not in records:
                    # The control plane died before writing the record.
                    shutil.rmtree(path, ignore_errors=True)
        needed = frozenset(Path(r.sockets) for r in records.values() if r.sockets and r.phase != "exited")
        socket_directories.remove_all(self._home, needed)
        self._limits.remove_all([record.id for record in records.values() if record.phase != "exited"])
        for record in records.values():
            if record.phase == "exited":
                self._exited[record.id] = record
                continue
            if record.process is None:
                leader = instance_processes.find_leader(instance_processes.marker(self._home.root, record.id))
                record = replace(record, process=leader)
                instance_records.save(self._directory(record.id), record)
            self._supervise(record)

    def _find_triton(self) -> tuple[Installation, Path, frozenset[str]]:
        """The installed Triton, its backend directory and its supported options. Cached."""
        if self._triton is None:
            self._home.require_shell_safe()
            triton = installation.locate(self._machine)
            try:
                backends = backend_directory.prepare(triton, self._backends, self._machine)
            except OSError as exc:
                raise Error("RuntimeUnavailable", f"cannot prepare Triton's backends: {exc}") from exc
            known = installation.supported_options(triton, (MAX_INPUT_SIZE, HTTP_RESTRICTED, GRPC_RESTRICTED))
            self._triton = triton, backends, known
        return self._triton

    def _model_files(self, spec: WorkloadSpec, directory: Path) -> Path:
        """Where the instance reads its model: in the store, if it cannot write there. Raises
        OSError."""
        files = self._repositories(spec.model.digest)
        return files if self._isolation.on else model_copies.own_files(directory, files)

    def _launch(self, record: InstanceRecord) -> InstanceRecord:
        """Starts the process of ``record`` on new sockets. The record is written first. Raises
        OSError."""
        triton, backends, known = self._find_triton()
        spec, directory = record.workload, self._directory(record.id)
        files, own_variables = self._model_files(spec, directory), dict(spec.environment_variables)
        repository = files
        if spec.container is not None:
            model_dir, repository = model_directories.create_model_dir(directory, spec.container, repository)
            own_variables[MODEL_DIR] = str(model_dir)
        repository = cpu_instances.prepare(directory, spec, repository)
        if on_cpu := cpu_instances.note(directory):
            instance_logs.append(directory, f"amphitrite: {on_cpu}")
        sockets = socket_directories.create(self._home)
        record = replace(record, sockets=str(sockets), port=0, grpc_port=None, process=None)
        instance_records.save(directory, record)
        options = Options(
            repository=repository,
            backends=backends,
            address=record.address,
            shm_prefix=instance_processes.shm_prefix(self._home.root, record.id),
            max_input_bytes=self._max_input_bytes,
            supported=known,
        )
        variables = command_line.environment(
            triton,
            isolated_start.variables(self._machine, directory) if self._isolation.on else self._machine,
            marker=instance_processes.marker(self._home.root, record.id),
            cores=engines.cores(spec.instance_type),
            gpus=engines.uses_gpus(spec.instance_type),
            variables=own_variables,
        )
        instance_logs.append(directory, f"{START_MARK}{sockets}")
        log = instance_logs.open_for_append(directory)
        try:
            arguments = command_line.arguments(triton, options)
            groups = self._limits.create(record.id, spec.instance_type)
            if self._isolation.on:
                shown = (*model_directories.directories(directory, files), repository, backends)
                place = Place(self._home.root, directory, spec.instance_type, triton, shown, sockets)
                process = isolated_start.spawn(
                    self._launcher, self._isolation, self._surroundings, place, arguments, variables, groups
                )
            else:
                process = instance_processes.spawn(arguments, variables, directory, log)
                control_groups.join(groups, process.pid)
        except OSError:
            socket_directories.remove(sockets)
            raise
        finally:
            os.close(log)
        record = replace(record, process=process)
        instance_records.save(directory, record)
        return record

    def _changed(self) -> None:
        """An instance has changed."""
        self._notify()
        with self._lock:
            start_now = any(record.phase == "starting" for record in self._records().values())
        if not start_now:
            self._prepare_launcher()

    def _prepare_launcher(self) -> None:
        """For the next start, which otherwise does it itself, while none is slowed down by it."""
        if self._isolation.on:
            with contextlib.suppress(OSError):
                self._launcher.prepare()


def _groups_name(home: Home) -> str:
    return f"amphitrite-{instance_processes.home_digest(home.root)}"


def stop_all(home: Home, grace_s: float) -> None:
    """Stops every instance of ``home`` while no control plane runs, by marker, so that none is
    missed.

    Sends SIGTERM, and SIGKILL after ``grace_s``. The records then show that the stop was requested.
    Leaves nothing in /dev/shm, and no control group.
    """
    prefix = f"{instance_processes.home_digest(home.root)}/"

    def belongs(marker: str) -> bool:
        return marker.startswith(prefix)

    pids = instance_processes.find(belongs)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            if os.getsid(pid) == pid:
                os.kill(pid, signal.SIGTERM)
    instance_processes.wait_for_exit(pids, grace_s)
    while rest := instance_processes.find(belongs):
        for pid in rest:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        instance_processes.wait_for_exit(rest, 5.0)
    records = instance_records.load_all(home.instances)
    instance_processes.remove_shared_memory(instance_processes.shm_prefix(home.root, r.id) for r in records)
    now = time.time()
    for record in records:
        if record.phase != "exited":
            ended = replace(record, phase="exited", stop_by=record.stop_by or now, exited_at=now)
            instance_records.save(home.instances / record.id, ended)
        if record.sockets is not None:
            socket_directories.remove(Path(record.sockets))
    with contextlib.suppress(Error):
        socket_directories.remove_all(home)
    control_groups.find(_groups_name(home)).remove_all()
