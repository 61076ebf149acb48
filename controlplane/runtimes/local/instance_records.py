"""The record of one instance on disk.

Decides the content of ``instances/<id>/instance.json`` and how it is replaced. Must not know
processes or probes. The record contains the deployment's environment variables, so its mode is
0600.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amphitrite.controlplane.core.desired.containers import Container
from amphitrite.controlplane.core.desired.resources import ModelReference, Probe, WorkloadSpec
from amphitrite.controlplane.core.observed.observations import Instance, Phase
from amphitrite.dataplane.machine.atomic_files import write_private
from amphitrite.dataplane.machine.processes import ProcessRecord
from amphitrite.dataplane.table.routing_table import Address, InstanceAddress
from amphitrite.dataplane.triton import command_line
from amphitrite.schemas.sealed_json import seal, unseal

FILE = "instance.json"


@dataclass(frozen=True, slots=True)
class InstanceRecord:
    """The record of one instance. Times: seconds since the epoch.

    * ``process``: None before the start, or if the control plane died while starting it.
    * ``stop_by``: when a stopping instance is killed.
    * ``restarts``: how often it was restarted because somebody else listened in its place.
    * ``sockets``: the directory in which it listens. None before the start, and of an instance that
      an earlier release started, which listens on the loopback ports ``port`` and ``grpc_port``.
    """

    id: str
    workload: WorkloadSpec
    slot: int
    attempt: int
    readiness: Probe
    liveness: Probe
    started_at: float
    process: ProcessRecord | None = None
    phase: Phase = "starting"
    ready_at: float | None = None
    stop_by: float | None = None
    exited_at: float | None = None
    exit_code: int | None = None
    live: bool = True
    reason: str | None = None
    engine: str | None = None
    note: str | None = None
    restarts: int = 0
    port: int = 0
    grpc_port: int | None = None
    sockets: str | None = None

    @property
    def address(self) -> InstanceAddress:
        if self.sockets is not None:
            return command_line.socket_address(Path(self.sockets))
        return Address("127.0.0.1", self.port, self.grpc_port)

    def observed(self) -> Instance:
        """The record as the reconciler observes it."""
        return Instance(
            id=self.id,
            workload=self.workload,
            slot=self.slot,
            attempt=self.attempt,
            phase=self.phase,
            address=None if self.phase == "exited" else self.address,
            started_at=self.started_at,
            ready_at=self.ready_at,
            exited_at=self.exited_at,
            exit_code=self.exit_code,
            requested_stop=self.stop_by is not None,
            live=self.live,
            reason=self.reason,
            engine=self.engine,
            note=self.note,
        )


def save(directory: Path, record: InstanceRecord) -> None:
    """Replaces the record of this directory atomically."""
    write_private(directory / FILE, seal(json.dumps(dataclasses.asdict(record))))


def load(directory: Path) -> InstanceRecord | None:
    """The record of this directory; None if there is none that this version can read."""
    try:
        return _from_json(unseal((directory / FILE).read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def load_all(instances: Path) -> list[InstanceRecord]:
    """All records below ``instances``, sorted by id."""
    if not instances.is_dir():
        return []
    records = (load(path) for path in sorted(instances.iterdir()) if path.is_dir())
    return [record for record in records if record is not None]


def _from_json(value: dict[str, Any]) -> InstanceRecord:
    workload = value["workload"]
    model, container = workload["model"], workload["container"]
    return InstanceRecord(
        **{
            **value,
            "workload": WorkloadSpec(
                **{
                    **workload,
                    "model": ModelReference(**{**model, "model_names": tuple(model["model_names"])}),
                    "environment_variables": tuple((n, v) for n, v in workload["environment_variables"]),
                    "container": None if container is None else Container(**container),
                }
            ),
            "readiness": Probe(**value["readiness"]),
            "liveness": Probe(**value["liveness"]),
            "process": ProcessRecord(**value["process"]) if value["process"] else None,
        }
    )
