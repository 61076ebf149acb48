"""The verbs of the store, and the values that go in and out.

Decides what is one transaction. Must not know SQL, HTTP or how a plan is made. Every verb is atomic: after ``kill -9``
between any two lines either all of it or none of it has happened. Names are compared without case throughout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from amphitrite.controlplane.core.status import Ref, State, Status, World
from amphitrite.dataplane.routing import RoutingTable, Secret
from amphitrite.schemas.errors import Error

__all__ = ["Operation", "Record", "Ref", "State", "Status", "Store", "World"]


@dataclass(frozen=True, slots=True)
class Record:
    """A stored endpoint or deployment as the API shows it. Times: seconds since the epoch. ``etag`` is quoted."""

    ref: Ref
    name: str  # as the user wrote it
    document: Mapping[str, Any]
    etag: str
    generation: int
    created_at: float
    modified_at: float
    deleting: bool
    status: Status


@dataclass(frozen=True, slots=True)
class Operation:
    """A long-running operation. ``phases``: (phase, message, entered_at) in order. ``status`` is ARM's word."""

    id: str
    ref: Ref
    verb: Literal["create", "update", "delete", "regenerateKeys"]
    generation: int
    status: Literal["InProgress", "Succeeded", "Failed", "Canceled"]
    started_at: float
    ended_at: float | None
    phases: Sequence[tuple[str, str, float]]
    error: Error | None


class Store(Protocol):
    """Endpoints, deployments, their operations and the routing table. (Models and blobs: ``models.ModelStore``.)"""

    # -- API side -----------------------------------------------------------------------------------------------------
    def put_endpoint(
        self, document: Mapping[str, Any], *, if_match: str | None, if_none_match: bool, now: float
    ) -> tuple[Record, Operation]:
        """Create or replace. A new endpoint gets two random keys. An unchanged document keeps its generation and gets
        an operation all the same (of one that has Failed: a new generation, so that it is tried again).

        Raises Error PreconditionFailed (etag differs, or it exists under ``if_none_match``), Conflict (it is being
        deleted)."""
        ...

    def put_deployment(
        self,
        endpoint: str,
        document: Mapping[str, Any],
        model: Mapping[str, Any],
        *,
        if_match: str | None,
        if_none_match: bool,
        now: float,
    ) -> tuple[Record, Operation]:
        """Create or replace; ``model`` is {"name", "version", "digest", "model_names"} as resolved now, stored beside
        the document. Raises ResourceNotFound (no such endpoint) and what ``put_endpoint`` raises."""
        ...

    def get_endpoint(self, name: str) -> Record: ...
    def list_endpoints(self) -> list[Record]: ...
    def get_deployment(self, endpoint: str, name: str) -> Record: ...
    def list_deployments(self, endpoint: str) -> list[Record]: ...

    def delete(self, ref: Ref, *, if_match: str | None, now: float) -> Operation | None:
        """Mark as deleting (an endpoint: its deployments too). None when there is nothing of that name."""
        ...

    def get_keys(self, endpoint: str) -> tuple[Secret, Secret]: ...

    def regenerate_key(self, endpoint: str, which: Literal["primary", "secondary"], *, now: float) -> Operation:
        """A new random key, generation + 1: the operation ends when the proxies have it."""
        ...

    def get_operation(self, operation_id: str) -> Operation: ...

    # -- reconciler side ----------------------------------------------------------------------------------------------
    def load_world(self) -> World: ...

    def publish(self, table: RoutingTable) -> RoutingTable:
        """Store ``table`` under the next version if its content differs from the stored one; return the stored one."""
        ...

    def record(self, statuses: Mapping[Ref, Status], *, now: float) -> None:
        """Write statuses and bring operations forward: note a changed (phase, message); an operation whose generation
        is observed ends Succeeded or, when the state is Failed, Failed with the status's error. A status for a ref
        that is gone is ignored."""
        ...

    def remove(self, refs: Sequence[Ref], *, now: float) -> None:
        """Drop rows marked as deleting; their delete operations end Succeeded, other open ones Canceled."""
        ...
