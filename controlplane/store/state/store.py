"""The verbs of the store, and the values that go in and out.

Decides what is one transaction. Must not know SQL, HTTP or how a plan is made. Every verb is atomic: after ``kill -9``
between any two lines either all of it or none of it has happened. Names are compared without case throughout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from amphitrite.controlplane.core.desired.compute_clusters import Compute
from amphitrite.controlplane.core.desired.resources import LOCAL
from amphitrite.controlplane.core.observed.status import Ref, State, Status, World
from amphitrite.controlplane.core.planning.key_rotation import SigningKey
from amphitrite.dataplane.table.routing_table import RoutingTable, Secret
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
    compute: str | None = None  # a deployment's


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
        compute: str = LOCAL,
        if_match: str | None,
        if_none_match: bool,
        now: float,
    ) -> tuple[Record, Operation]:
        """Create or replace; ``model`` is {"name", "version", "digest", "model_names"} (and
        "container", see ``core.resources.stored_model``) as resolved now, ``compute`` the
        name of the compute that it runs on; both are stored beside the document. Raises ResourceNotFound (no such
        endpoint) and what ``put_endpoint`` raises."""
        ...

    def get_endpoint(self, name: str) -> Record: ...
    def list_endpoints(self, skip: int = 0, limit: int | None = None) -> list[Record]:
        """Sorted by name; a part of them where ``skip`` or ``limit`` says so."""
        ...

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

    def exclusive(self) -> AbstractContextManager[None]:
        """What is read inside is still so when it is written inside: no other block like this runs meanwhile, in any
        process. Re-entrant in a thread. Raises Error RuntimeUnavailable."""
        ...

    def put_compute(self, compute: Compute, *, now: float) -> None:
        """Attach it, or replace what is attached under its name, whose first spelling stays."""
        ...

    def get_compute(self, name: str) -> Compute:
        """Raises Error ResourceNotFound."""
        ...

    def list_computes(self) -> list[Compute]:
        """Those that are attached, sorted by name."""
        ...

    def delete_compute(self, name: str) -> bool:
        """Whether there was one. Raises Error Conflict while an endpoint's document names it or a deployment runs on
        it."""
        ...

    def signing_keys(self) -> tuple[SigningKey, ...]:
        """The key pairs that sign scoring tokens, from the oldest to the newest."""
        ...

    # -- reconciler side ----------------------------------------------------------------------------------------------
    def load_world(self) -> World: ...

    def change_signing_keys(self, added: Sequence[SigningKey], removed: Sequence[SigningKey]) -> None:
        """Both at once."""
        ...

    def publish(self, table: RoutingTable, *, above: int = 0) -> RoutingTable:
        """Store ``table`` under the next version if its content differs from the stored one; return the stored one.

        ``above``: the newest version that a proxy has, which may be of another history (another store, or this one
        before it was restored): a lower version is told to nobody, so the table gets one beyond it, also when
        unchanged."""
        ...

    def published(self) -> RoutingTable | None:
        """The table that ``publish`` stored last, in whichever process."""
        ...

    def record(self, statuses: Mapping[Ref, Status], *, now: float) -> None:
        """Write statuses and bring operations forward: note a changed (phase, message); an operation whose generation
        is observed ends Succeeded or, when the state is Failed, Failed with the status's error. A status for a ref
        that is gone is ignored."""
        ...

    def remove(self, refs: Sequence[Ref], *, now: float) -> None:
        """Drop rows marked as deleting; their delete operations end Succeeded, other open ones Canceled."""
        ...
