"""Facts: instances as a runtime reports them, and proxies as their agents report themselves.

Decides the vocabulary of facts. Must not know how a fact was obtained.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from amphitrite.controlplane.core.desired.resources import WorkloadSpec
from amphitrite.dataplane.table.routing_table import InstanceAddress

#: starting: the process runs and some model is not ready yet. ready: every model is ready. unready:
#: it was ready, and its readiness probe fails now. stopping: it was told to stop and still runs.
#: exited: the process has ended, its record remains.
Phase = Literal["starting", "ready", "unready", "stopping", "exited"]


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a living instance does not become ready, as its runtime reports it. Examples: an image
    that cannot be pulled, no node with a free GPU.

    ``code``: one of ``schemas.errors.CODES``. ``lacks_capacity``: it would start if there were free
    capacity. ``since``: seconds since the epoch. With ``lacks_capacity`` it is the later of two
    times: when the fault was first seen, and when a pod that may have freed capacity was last seen
    to go.
    """

    code: str
    message: str
    hint: str | None = None
    lacks_capacity: bool = False
    since: float = 0.0


@dataclass(frozen=True, slots=True)
class ModelFetch:
    """How an instance got its model. ``cached``: the node's cache had it. ``size``: in bytes."""

    cached: bool
    size: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Instance:
    """One instance of a workload.

    ``id`` is unique. A runtime that names its instances uses ``<workload name>-<slot>-<attempt>``;
    on Kubernetes the id begins with the pod's name. ``slot`` counts from 0 to instance_count - 1;
    on Kubernetes equal pods may swap slots between two observations. ``attempt`` counts the starts
    in a slot. Times are seconds since the epoch. ``live``: false once the liveness probe has failed
    ``failure_threshold`` times. ``requested_stop``: it exited because this server stopped it.
    ``reason``: of a failure, the server's own log line about it. ``fault``: what keeps it from
    becoming ready. ``grant_ends``: False for a pod of an earlier release, whose right to fetch its
    model has no end of its own.
    """

    id: str
    workload: WorkloadSpec
    slot: int
    attempt: int
    phase: Phase
    address: InstanceAddress | None
    started_at: float
    ready_at: float | None = None
    exited_at: float | None = None
    exit_code: int | None = None
    requested_stop: bool = False
    live: bool = True
    reason: str | None = None
    engine: str | None = None  #: what serves, e.g. "Triton 2.51.0 (onnxruntime 1.31.1, CPU)"
    note: str | None = None  #: e.g. that a GPU instance type runs on the CPU here
    fault: Fault | None = None
    model_fetch: ModelFetch | None = None
    grant_ends: bool = True


@dataclass(frozen=True, slots=True)
class AgentReport:
    """The last report of one data-plane agent.

    ``acknowledged_version``: the newest table whose routes are in force in its proxy.
    ``drained_version``: the newest table for which no request is in flight on anything that the
    table no longer names. ``error``: why the proxy refused the table ``rejected_version``.
    """

    id: str
    acknowledged_version: int
    drained_version: int
    seen_at: float
    rejected_version: int | None = None
    error: str | None = None


def newest_version(reports: Iterable[AgentReport]) -> int:
    """The newest table version that any of the proxies has received, 0 without reports."""
    return max((max(r.acknowledged_version, r.rejected_version or 0) for r in reports), default=0)


def of_this_history(report: AgentReport, newest: int) -> AgentReport:
    """``report`` without versions of another history. ``newest``: the last table that this store
    published.

    An agent with a later version got it from another store, or from this store before it was
    restored. It has acknowledged none of the tables of this store.
    """
    if report.acknowledged_version <= newest:
        return report
    return replace(report, acknowledged_version=0, drained_version=0)
