"""What is there: instances as a runtime reports them, and proxies as their agents report themselves.

Decides the vocabulary of facts. Must not know how a fact was found out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from amphitrite.controlplane.core.resources import WorkloadSpec
from amphitrite.dataplane.routing import Address

#: starting: the process runs, some model is not ready yet. ready: every model is ready. unready: it was ready once and
#: its readiness probe fails now. stopping: told to stop, still there. exited: the process is gone, the record remains.
Phase = Literal["starting", "ready", "unready", "stopping", "exited"]


@dataclass(frozen=True, slots=True)
class Instance:
    """One instance of a workload.

    ``id`` is ``<workload name>-<slot>-<attempt>``; ``slot`` counts from 0 below instance_count, ``attempt`` grows with
    each start in that slot. Times are seconds since the epoch. ``live`` is false once the liveness probe has failed
    ``failure_threshold`` times. ``requested_stop``: it exited because we told it to. ``reason``: for a failure, the
    server's own line about it.
    """

    id: str
    workload: WorkloadSpec
    slot: int
    attempt: int
    phase: Phase
    address: Address | None
    started_at: float
    ready_at: float | None = None
    exited_at: float | None = None
    exit_code: int | None = None
    requested_stop: bool = False
    live: bool = True
    reason: str | None = None
    engine: str | None = None  #: what serves, e.g. "Triton 2.51.0 (onnxruntime 1.31.1, CPU)"
    note: str | None = None  #: e.g. that a GPU instance type runs on the CPU here


@dataclass(frozen=True, slots=True)
class AgentReport:
    """One data-plane agent's last word.

    ``acknowledged_version``: the newest table whose routes its proxy has in force. ``drained_version``: the newest
    table for which nothing is in flight any more on what that table no longer names. ``error``: why the proxy
    refused the table ``rejected_version``.
    """

    id: str
    acknowledged_version: int
    drained_version: int
    seen_at: float
    rejected_version: int | None = None
    error: str | None = None
