"""What is there: instances as a runtime reports them, and proxies as their agents report themselves.

Decides the vocabulary of facts. Must not know how a fact was found out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from amphitrite.controlplane.core.desired.resources import WorkloadSpec
from amphitrite.dataplane.table.routing_table import Address

#: starting: the process runs, some model is not ready yet. ready: every model is ready. unready: it was ready once and
#: its readiness probe fails now. stopping: told to stop, still there. exited: the process is gone, the record remains.
Phase = Literal["starting", "ready", "unready", "stopping", "exited"]


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a living instance does not get on, as whoever runs it says: an image that cannot be pulled, no node with a
    free GPU. ``code``: one of ``schemas.errors.CODES``. ``scarce``: it only lacks room, and would start if there were.
    ``since``: seconds since the epoch; of a scarce one the later of when it was first seen and when anything that might
    have made room (a pod that went away) was last seen, so that who made room sees whether it was enough.
    """

    code: str
    message: str
    hint: str | None = None
    scarce: bool = False
    since: float = 0.0


@dataclass(frozen=True, slots=True)
class ModelFetch:
    """How an instance came by its model. ``cached``: it was on the node already. ``size`` in bytes."""

    cached: bool
    size: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Instance:
    """One instance of a workload.

    ``id`` is unique; a runtime that gives instances their names makes it ``<workload name>-<slot>-<attempt>``, on
    Kubernetes it begins with the pod's name. ``slot`` counts from 0 below instance_count; which of several like
    instances has which slot may differ between two looks where slots carry nothing. ``attempt`` grows with each start
    in that slot. Times are seconds since the epoch. ``live`` is false once the liveness probe has failed
    ``failure_threshold`` times. ``requested_stop``: it exited because we told it to. ``reason``: for a failure, the
    server's own line about it. ``fault``: what keeps it from becoming ready.
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
    fault: Fault | None = None
    model_fetch: ModelFetch | None = None


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


def newest_version(reports: Iterable[AgentReport]) -> int:
    """The newest table that any of the proxies has seen."""
    return max((max(r.acknowledged_version, r.rejected_version or 0) for r in reports), default=0)


def of_this_history(report: AgentReport, newest: int) -> AgentReport:
    """``report`` as it counts where ``newest`` is the last table ever published: an agent that has a later one was told
    it by another store, or by this one before it was restored, and has acknowledged nothing of ours."""
    if report.acknowledged_version <= newest:
        return report
    return replace(report, acknowledged_version=0, drained_version=0)
