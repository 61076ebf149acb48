"""Where instances run: the five verbs the reconciler needs, whatever is behind them.

Decides the contract that ``local`` (processes on this machine), ``memory`` (tests) and later ``kubernetes`` (pods)
keep; ``tests/controlplane/test_runtimes.py`` holds them to it. Must not know plans, routing or the store.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from amphitrite.controlplane.core.observed import Instance
from amphitrite.controlplane.core.resources import Probe, WorkloadSpec


class Runtime(Protocol):
    """Every verb is idempotent and returns quickly; what it leads to is seen by a later ``observe``."""

    name: str

    def observe(self) -> tuple[Instance, ...]:
        """All instances with a record, sorted by id, the exited ones too until ``forget``."""
        ...

    def start(self, workload: WorkloadSpec, slot: int, attempt: int, readiness: Probe, liveness: Probe) -> None:
        """Start the instance ``<workload>-<slot>-<attempt>``; nothing happens when it has a record already.

        Raises Error("RuntimeUnavailable") when this runtime cannot start anything at all.
        """
        ...

    def stop(self, instance_id: str, grace_s: float) -> None:
        """Ask the instance to end, kill it after ``grace_s``. Unknown or exited: nothing happens."""
        ...

    def forget(self, instance_id: str) -> None:
        """Drop the record and log of an exited instance."""
        ...

    def logs(self, endpoint: str, deployment: str, tail: int) -> str:
        """The last ``tail`` lines of each instance's log under a heading, newest instance last; crashed ones too."""
        ...

    def watch(self, wake: Callable[[], None]) -> None:
        """Call ``wake`` (from any thread) whenever ``observe`` would answer differently than before."""
        ...

    def close(self) -> None:
        """Stop watching. Instances live on."""
        ...
