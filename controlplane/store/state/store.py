"""The store's protocol, and the values that it takes and returns.

Decides what is one transaction. Must not know SQL, HTTP or how a plan is made. Every method is
atomic: after ``kill -9`` at any point, all of its effect is stored or none. Names are compared
without case.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from amphitrite.controlplane.core.desired.compute_clusters import Compute
from amphitrite.controlplane.core.desired.resources import LOCAL, Deployment
from amphitrite.controlplane.core.history.revisions import NOBODY, Author, Revision
from amphitrite.controlplane.core.history.traffic_history import Traffic
from amphitrite.controlplane.core.observed.status import Ref, State, Status, World
from amphitrite.controlplane.core.planning.key_rotation import SigningKey
from amphitrite.controlplane.core.rollouts.traffic_rollout import Rollout
from amphitrite.controlplane.core.scaling.scales import InstanceCounts, Scale, ScaleChange, ScaleEvent
from amphitrite.controlplane.store.state.autoscale_settings import StoredAutoscaleSettings
from amphitrite.dataplane.table.routing_table import RoutingTable, Secret
from amphitrite.schemas.errors import Error

__all__ = ["Operation", "Record", "Ref", "State", "Status", "Store", "World", "operation_alias"]


@dataclass(frozen=True, slots=True)
class Record:
    """A stored endpoint or deployment, as the API shows it.

    Times: seconds since the epoch. ``name``: as the user wrote it. ``etag``: with quotes.
    ``compute``: of a deployment. ``scale``: of a deployment whose number of instances a scaler
    sets.
    """

    ref: Ref
    name: str
    document: Mapping[str, Any]
    etag: str
    generation: int
    created_at: float
    modified_at: float
    deleting: bool
    status: Status
    compute: str | None = None
    scale: Scale | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """A long-running operation.

    ``status``: Azure Resource Manager's term. ``phases``: (phase, message, time of entry), in
    order. Times: seconds since the epoch.
    """

    id: str
    ref: Ref
    verb: Literal["create", "update", "delete", "regenerateKeys"]
    generation: int
    status: Literal["InProgress", "Succeeded", "Failed", "Canceled"]
    started_at: float
    ended_at: float | None
    phases: Sequence[tuple[str, str, float]]
    error: Error | None


def operation_alias(ref: Ref, generation: int) -> str:
    """An id for ``Store.get_operation``: the newest operation that led to this generation.

    It follows from the resource alone, so a response can name it without a look at operations.
    """
    kind = "oeidp" if ref.deployment is None else "odidp"
    names = ref.endpoint if ref.deployment is None else f"{ref.endpoint}:{ref.deployment}"
    return f"{kind}:{names}:{generation}"


class Store(Protocol):
    """Endpoints, deployments, their operations and the routing table.

    ``store.assets.model_store.ModelStore`` holds models and uploads.
    """

    @property
    def autoscale_settings(self) -> StoredAutoscaleSettings:
        """Azure Monitor's settings, for the API and for the leader, which only reads them."""
        ...

    # Methods for the API.
    def put_endpoint(
        self,
        document: Mapping[str, Any],
        *,
        if_match: str | None,
        if_none_match: bool,
        now: float,
        by: Author = NOBODY,
        rollout: Rollout | None = None,
    ) -> tuple[Record, Operation]:
        """Creates or replaces an endpoint. A new endpoint gets two random keys.

        ``rollout`` begins with it.

        A document that differs becomes a revision, with its author ``by``.

        An unchanged document keeps its generation and gets an operation too. If its last change has
        Failed, it gets a new generation, so that the change is tried again.

        Raises Error PreconditionFailed (the etag differs, or it exists and ``if_none_match`` is
        set) or Conflict (it is being deleted).
        """
        ...

    def put_deployment(
        self,
        endpoint: str,
        document: Mapping[str, Any],
        model: Mapping[str, Any],
        *,
        compute: str = LOCAL,
        waiting: str | None = None,
        if_match: str | None,
        if_none_match: bool,
        now: float,
        by: Author = NOBODY,
    ) -> tuple[Record, Operation]:
        """Creates or replaces a deployment.

        ``model``: what the model reference resolves to, as {"name", "version", "digest",
        "model_names"} and "container" if any (``core.desired.resources.stored_model``).
        ``compute``: the name of the compute that it runs on. Both are stored beside the document.
        ``waiting``: why the change cannot begin yet. The resource and its operation say so from the
        start. Raises Error ResourceNotFound (no such endpoint) and what ``put_endpoint`` raises.
        """
        ...

    def set_pause(
        self, endpoint: str, name: str, paused: bool, *, if_match: str | None, now: float, by: Author
    ) -> tuple[Record, Operation]:
        """Pauses a deployment, or resumes it. Who did so is in its history.

        The operation ends when it has no instance any more, or when all are ready. If nothing
        changes it ends at once. Raises Error ResourceNotFound, PreconditionFailed or Conflict (it
        is being deleted).
        """
        ...

    def revisions(self, ref: Ref) -> list[Revision]:
        """The documents of an endpoint or a deployment, oldest first; the last one is in force.

        Empty for one that has not changed since before revisions were kept. Raises Error
        ResourceNotFound.
        """
        ...

    def start_rollout(self, rollout: Rollout) -> Rollout:
        """Stores a rollout, and gives it the next number of its endpoint.

        Raises Error Conflict (another one goes on, or the endpoint is being deleted) or
        ResourceNotFound.
        """
        ...

    def rollouts(self, endpoint: str) -> list[Rollout]:
        """The rollouts of an endpoint that are kept, newest first.

        Raises Error ResourceNotFound.
        """
        ...

    def change_rollout(
        self, before: Rollout, after: Rollout, traffic: Traffic | None, *, by: Author, now: float
    ) -> None:
        """Stores ``after``, and with it the endpoint's ``traffic`` if there is any, as a revision.

        Raises Error Conflict if the stored rollout is not ``before`` any more, so what a person
        asks and what the leader does never come in between.
        """
        ...

    def scale_events(self, ref: Ref) -> list[ScaleEvent]:
        """The changes of a deployment's number of instances by scalers, oldest first. Raises Error
        ResourceNotFound."""
        ...

    def instance_counts(self) -> list[InstanceCounts]:
        """The numbers of instances of all deployments, sorted by endpoint and name."""
        ...

    def get_endpoint(self, name: str) -> Record: ...
    def list_endpoints(self, skip: int = 0, limit: int | None = None) -> list[Record]:
        """Endpoints sorted by name; ``skip`` and ``limit`` select a page."""
        ...

    def get_deployment(self, endpoint: str, name: str) -> Record: ...
    def list_deployments(self, endpoint: str) -> list[Record]: ...

    def list_references(self, field: Literal["model", "environment"]) -> list[tuple[str, str]]:
        """(``endpoint/deployment``, ARM id) of every deployment, also one that is being deleted,
        whose document has the field."""
        ...

    def delete(self, ref: Ref, *, if_match: str | None, now: float) -> Operation | None:
        """Marks a resource as deleting, and an endpoint's deployments with it. None if it does not
        exist."""
        ...

    def get_keys(self, endpoint: str) -> tuple[Secret, Secret]: ...

    def regenerate_key(self, endpoint: str, which: Literal["primary", "secondary"], *, now: float) -> Operation:
        """Replaces a key with a random one in a new generation. The operation ends when all proxies
        have it."""
        ...

    def get_operation(self, operation_id: str) -> Operation:
        """``operation_id``: of an operation, or of ``operation_alias``. Raises Error
        ResourceNotFound."""
        ...

    def space(self) -> tuple[str, int]:
        """(where the database is, without a password; its bytes)."""
        ...

    def exclusive(self) -> AbstractContextManager[None]:
        """A block in which values that were read are still current when they are written.

        No other such block runs at the same time, in any process. Re-entrant in a thread. Raises
        Error RuntimeUnavailable.
        """
        ...

    def put_compute(self, compute: Compute, *, now: float) -> None:
        """Attaches a compute or replaces the one of its name, whose first spelling is kept."""
        ...

    def list_computes(self) -> list[Compute]:
        """The attached computes, sorted by name."""
        ...

    def delete_compute(self, name: str) -> bool:
        """Detaches a compute. Returns whether it existed.

        Raises Error Conflict while an endpoint's document names it or a deployment runs on it.
        """
        ...

    def signing_keys(self) -> tuple[SigningKey, ...]:
        """The key pairs that sign scoring tokens, oldest first."""
        ...

    # Methods for the leader. Those that write raise Error Conflict if another process has begun a
    # term since this one did.
    def begin_term(self) -> None:
        """Ends the term of any other process. Call it only while this process leads."""
        ...

    def load_world(self) -> World:
        """``instance_count`` of its deployments is what is in force, whoever sets it."""
        ...

    def scales(self) -> Mapping[Ref, Scale]:
        """The scales of all deployments that have one."""
        ...

    def scaled(self) -> Mapping[Ref, tuple[Deployment, Scale]]:
        """The deployments that have a scale and are not being deleted, as ``load_world`` has
        them."""
        ...

    def set_scale(self, change: ScaleChange) -> Scale | None:
        """Stores a scale, and its event. Returns the scale as stored; None if the deployment is
        gone or is being deleted.

        Raises Error Conflict also if the scale has changed since ``change.before`` was read, so two
        writers never make one change twice.
        """
        ...

    def active_rollouts(self) -> list[Rollout]:
        """The rollouts that have not ended, sorted by endpoint."""
        ...

    def advance_rollout(
        self, before: Rollout, after: Rollout, traffic: Traffic | None, *, by: Author, now: float
    ) -> None:
        """As ``change_rollout``, by the leader."""
        ...

    def change_signing_keys(self, added: Sequence[SigningKey], removed: Sequence[SigningKey]) -> None:
        """Adds and removes keys in one transaction."""
        ...

    def mark_models_used(self, used: Collection[tuple[str, str]], *, now: float) -> None:
        """Notes that the model versions (name, version) are in use at ``now``."""
        ...

    def publish(self, table: RoutingTable, *, above: int = 0) -> RoutingTable:
        """Stores ``table`` as the next version if its content differs from the stored one. Returns
        the stored table.

        ``above``: the newest version that a proxy has, which may be of another history (another
        store, or this store before it was restored). Agents ignore lower versions, so the table
        then gets a version above it, even if its content is unchanged.
        """
        ...

    def published(self) -> RoutingTable | None:
        """The last published table, by any process; None if there is none."""
        ...

    def record(self, statuses: Mapping[Ref, Status], *, now: float) -> None:
        """Stores statuses and advances operations.

        A changed (phase, message) is recorded. An operation whose generation is observed ends
        Succeeded, or Failed with the status's error if the state is Failed. Statuses of removed
        resources are ignored.
        """
        ...

    def remove(self, refs: Sequence[Ref], *, now: float) -> None:
        """Removes rows that are marked as deleting. Their delete operations end Succeeded, all
        others Canceled."""
        ...
