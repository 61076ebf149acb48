"""The store on a database.

Decides what is one transaction. ``changes`` decides what a change means, ``outcomes`` what a status
means, and ``operation_rows`` how operations progress. Must not know HTTP or plans.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Connection, delete, insert, select

from amphitrite.controlplane.auth.random_text import random_text
from amphitrite.controlplane.core.desired.compute_clusters import Compute
from amphitrite.controlplane.core.desired.resources import LOCAL, Deployment
from amphitrite.controlplane.core.history.revisions import NOBODY, Author, Revision
from amphitrite.controlplane.core.history.traffic_history import Traffic
from amphitrite.controlplane.core.observed.status import Ref, Status, World
from amphitrite.controlplane.core.planning.key_rotation import SigningKey
from amphitrite.controlplane.core.rollouts.traffic_rollout import Rollout
from amphitrite.controlplane.core.scaling.scales import InstanceCounts, Scale, ScaleChange, ScaleEvent, scaled
from amphitrite.controlplane.store.migrations import migrate
from amphitrite.controlplane.store.sql.json_text import JsonText
from amphitrite.controlplane.store.sql.tables import deployments, endpoints, routing_tables
from amphitrite.controlplane.store.sql.transactions import Database
from amphitrite.controlplane.store.state import (
    changes,
    compute_rows,
    model_uses,
    operation_rows,
    outcomes,
    resource_rows,
    revision_rows,
    rollout_rows,
    scale_rows,
    signing_key_rows,
)
from amphitrite.controlplane.store.state.autoscale_settings import StoredAutoscaleSettings
from amphitrite.controlplane.store.state.leader_term import LeaderTerm
from amphitrite.controlplane.store.state.read_cache import ReadCache
from amphitrite.controlplane.store.state.store import Operation, Record
from amphitrite.dataplane.table.routing_table import RoutingTable, Secret
from amphitrite.dataplane.table.text_codec import TableText
from amphitrite.schemas.names import key

#: The number of characters of an endpoint's key (190 bits of randomness).
_KEY_LENGTH = 32


def open_store(url_or_path: str | Path) -> SqlStore:
    """The store in a database, with its schema migrated to the newest revision.

    ``url_or_path``: a path or ``sqlite:////path`` for an SQLite file, which is created if it does
    not exist; or ``postgresql+psycopg://USER:PASSWORD@HOST/DATABASE`` for an existing database.

    Raises Error RuntimeUnavailable (the database cannot be opened, or a newer version wrote it),
    Unsupported (another kind of database, or no driver) or BadArgument (not a URL).
    """
    database = Database(url_or_path)
    try:
        migrate(database)
    except BaseException:
        database.close()
        raise
    return SqlStore(database)


class SqlStore:
    """Implements ``store.Store``, which documents the methods. Thread-safe."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.autoscale_settings = StoredAutoscaleSettings(database)
        self._cache = ReadCache()
        self._term = LeaderTerm()
        self._text = TableText()

    def close(self) -> None:
        self.database.close()

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
        ref = Ref(key(document["name"]))
        new_keys = {"primary_key": random_text(_KEY_LENGTH), "secondary_key": random_text(_KEY_LENGTH)}
        with self.database.write() as connection:
            operation = changes.put(
                connection, ref, document, new_keys, if_match=if_match, if_none_match=if_none_match, now=now, by=by
            )
            if rollout is not None:
                rollout_rows.start(connection, rollout)
            return resource_rows.record(resource_rows.get(connection, ref)), operation

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
        ref = Ref(key(endpoint), key(document["name"]))
        parent = Ref(ref.endpoint)
        with self.database.write() as connection:
            changes.refuse_deleting(resource_rows.get(connection, parent), parent)
            former = resource_rows.find(connection, ref)
            ended = model_uses.of_model(None if former is None else former["model"])
            model_uses.mark(connection, [*ended, *model_uses.of_model(model)], now)
            operation = changes.put(
                connection, ref, document, {"model": dict(model), "compute": compute},
                if_match=if_match, if_none_match=if_none_match, now=now, by=by,
            )  # fmt: skip
            scale_rows.follow(connection, ref, former, document, now)
            if waiting is not None:
                status = replace(resource_rows.record(resource_rows.get(connection, ref)).status, phase="Waiting")
                in_progress = operation_rows.all_open(connection).get(ref, ())
                outcomes.record(connection, ref, replace(status, message=waiting), in_progress, now=now)
            return _deployment(connection, resource_rows.get(connection, ref)), operation

    def set_pause(
        self, endpoint: str, name: str, paused: bool, *, if_match: str | None, now: float, by: Author
    ) -> tuple[Record, Operation]:
        ref = Ref(key(endpoint), key(name))
        with self.database.write() as connection:
            row = resource_rows.get(connection, ref)
            changes.require_conditions(row, ref, if_match, False)
            changes.refuse_deleting(row, ref)
            operation = changes.set_pause(connection, ref, row, paused, now=now, by=by)
            return _deployment(connection, resource_rows.get(connection, ref)), operation

    def revisions(self, ref: Ref) -> list[Revision]:
        ref = _lower(ref)
        with self.database.read() as connection:
            resource_rows.get(connection, ref)
            return revision_rows.list_all(connection, ref)

    def start_rollout(self, rollout: Rollout) -> Rollout:
        ref = Ref(key(rollout.endpoint))
        with self.database.write() as connection:
            changes.refuse_deleting(resource_rows.get(connection, ref), ref)
            return rollout_rows.start(connection, rollout)

    def rollouts(self, endpoint: str) -> list[Rollout]:
        with self.database.read() as connection:
            resource_rows.get(connection, Ref(key(endpoint)))
            return rollout_rows.list_all(connection, key(endpoint))

    def change_rollout(
        self, before: Rollout, after: Rollout, traffic: Traffic | None, *, by: Author, now: float
    ) -> None:
        with self.database.write() as connection:
            rollout_rows.change(connection, before, after, traffic, by, now)

    def scale_events(self, ref: Ref) -> list[ScaleEvent]:
        ref = _lower(ref)
        with self.database.read() as connection:
            resource_rows.get(connection, ref)
            return scale_rows.events(connection, ref)

    def instance_counts(self) -> list[InstanceCounts]:
        with self.database.read() as connection:
            return scale_rows.instance_counts(connection)

    def get_endpoint(self, name: str) -> Record:
        with self.database.read() as connection:
            return resource_rows.record(resource_rows.get(connection, Ref(key(name))))

    def list_endpoints(self, skip: int = 0, limit: int | None = None) -> list[Record]:
        query = select(endpoints).order_by(endpoints.c.key).offset(skip).limit(limit)
        with self.database.read() as connection:
            rows = connection.execute(query).mappings()
            return [resource_rows.record(row) for row in rows]

    def get_deployment(self, endpoint: str, name: str) -> Record:
        with self.database.read() as connection:
            return _deployment(connection, resource_rows.get(connection, Ref(key(endpoint), key(name))))

    def list_deployments(self, endpoint: str) -> list[Record]:
        with self.database.read() as connection:
            resource_rows.get(connection, Ref(key(endpoint)))
            rows, scales = _deployments_of(connection, key(endpoint)), scale_rows.all_scales(connection)
            return [replace(one, scale=scales.get(one.ref)) for one in map(resource_rows.record, rows)]

    def list_references(self, field: Literal["model", "environment"]) -> list[tuple[str, str]]:
        reference = deployments.c.document[field].as_string()
        query = select(endpoints.c.name, deployments.c.name.label("deployment"), reference.label("reference"))
        query = query.join(endpoints, endpoints.c.key == deployments.c.endpoint).where(reference.is_not(None))
        with self.database.read() as connection:
            rows = connection.execute(query.order_by(endpoints.c.key, deployments.c.key))
            return [(f"{row.name}/{row.deployment}", str(row.reference)) for row in rows]

    def delete(self, ref: Ref, *, if_match: str | None, now: float) -> Operation | None:
        ref = _lower(ref)
        with self.database.write() as connection:
            row = resource_rows.find(connection, ref)
            if row is None:
                return None
            changes.require_conditions(row, ref, if_match, False)
            open_deletion = operation_rows.open_delete(connection, ref)
            if open_deletion is not None:
                return open_deletion
            if ref.deployment is None:
                for child in _deployments_of(connection, ref.endpoint):
                    if not child["deleting"]:
                        changes.mark_deleting(connection, resource_rows.ref_of(child), child)
            generation = row["generation"] if row["deleting"] else changes.mark_deleting(connection, ref, row)
            return operation_rows.begin(connection, ref, "delete", generation, now=now)

    def get_keys(self, endpoint: str) -> tuple[Secret, Secret]:
        with self.database.read() as connection:
            row = resource_rows.get(connection, Ref(key(endpoint)))
        return Secret(row["primary_key"]), Secret(row["secondary_key"])

    def regenerate_key(self, endpoint: str, which: Literal["primary", "secondary"], *, now: float) -> Operation:
        ref = Ref(key(endpoint))
        with self.database.write() as connection:
            row = resource_rows.get(connection, ref)
            changes.refuse_deleting(row, ref)
            generation = changes.set_columns(connection, ref, row, {f"{which}_key": random_text(_KEY_LENGTH)})
            return operation_rows.begin(connection, ref, "regenerateKeys", generation, now=now)

    def get_operation(self, operation_id: str) -> Operation:
        with self.database.read() as connection:
            return operation_rows.get(connection, operation_id)

    def space(self) -> tuple[str, int]:
        return self.database.place, self.database.size()

    def exclusive(self) -> AbstractContextManager[None]:
        return self.database.exclusive()

    def put_compute(self, compute: Compute, *, now: float) -> None:
        with self.database.write() as connection:
            compute_rows.put(connection, compute, now)

    def list_computes(self) -> list[Compute]:
        with self.database.read() as connection:
            return compute_rows.list_all(connection)

    def delete_compute(self, name: str) -> bool:
        with self.database.write() as connection:
            return compute_rows.delete(connection, name)

    def signing_keys(self) -> tuple[SigningKey, ...]:
        with self.database.read() as connection:
            return signing_key_rows.list_all(connection)

    # Methods for the leader.
    def begin_term(self) -> None:
        with self.database.write() as connection:
            self._term.begin(connection)

    @contextmanager
    def _leader_write(self, *, quiet: bool = False) -> Iterator[Connection]:
        """A write transaction that a leader of another term does not make. ``quiet``: it wakes
        nobody."""
        with self.database.write(quiet=quiet) as connection:
            self._term.require(connection)
            yield connection

    def load_world(self) -> World:
        with self.database.read() as connection:
            table = self._cache.table(connection)
            found, scales = self._cache.deployments(connection), scale_rows.all_scales(connection)
            compared = rollout_rows.comparisons(connection)
            return World(
                endpoints=tuple(
                    replace(one, comparison=of) if (of := compared.get(key(one.name))) is not None else one
                    for one in self._cache.endpoints(connection)
                ),
                deployments=tuple(scaled(one, scales.get(Ref(one.endpoint, one.name))) for one in found),
                table=self._cache.keep(table) or RoutingTable(version=0),
            )

    def scales(self) -> Mapping[Ref, Scale]:
        with self.database.read() as connection:
            return scale_rows.all_scales(connection)

    def scaled(self) -> Mapping[Ref, tuple[Deployment, Scale]]:
        with self.database.read() as connection:
            scales = scale_rows.all_scales(connection)
            found = self._cache.scaled(connection) if scales else ()
        own = {Ref(one.endpoint, one.name): one for one in found if not one.deleting}
        return {ref: (scaled(one, scales[ref]), scales[ref]) for ref, one in own.items()}

    def set_scale(self, change: ScaleChange) -> Scale | None:
        with self._leader_write() as connection:
            row = resource_rows.find(connection, change.ref)
            return None if row is None or row["deleting"] else scale_rows.write(connection, change)

    def active_rollouts(self) -> list[Rollout]:
        with self.database.read() as connection:
            return rollout_rows.active(connection)

    def advance_rollout(
        self, before: Rollout, after: Rollout, traffic: Traffic | None, *, by: Author, now: float
    ) -> None:
        # What was counted changes every few seconds, and nobody waits for it.
        quiet = traffic is None and after.is_active
        with self._leader_write(quiet=quiet) as connection:
            rollout_rows.change(connection, before, after, traffic, by, now)

    def change_signing_keys(self, added: Sequence[SigningKey], removed: Sequence[SigningKey]) -> None:
        with self._leader_write() as connection:
            signing_key_rows.change(connection, added, removed)

    def mark_models_used(self, used: Collection[tuple[str, str]], *, now: float) -> None:
        with self._leader_write() as connection:
            model_uses.mark(connection, used, now)

    def publish(self, table: RoutingTable, *, above: int = 0) -> RoutingTable:
        with self._leader_write() as connection:
            stored = self._cache.table(connection)
            if stored is not None and stored.version >= above and stored.same_content(table):
                return stored
            version = max(0 if stored is None else stored.version, above) + 1
            published = replace(table, version=version)
            connection.execute(delete(routing_tables))
            content = JsonText(self._text.whole(published))
            connection.execute(insert(routing_tables).values(version=version, content=content))
        self._cache.keep(published)
        return published

    def published(self) -> RoutingTable | None:
        with self.database.read() as connection:
            table = self._cache.table(connection)
        return self._cache.keep(table)

    def record(self, statuses: Mapping[Ref, Status], *, now: float) -> None:
        with self._leader_write() as connection:
            open_operations = operation_rows.all_open(connection)
            for ref, status in statuses.items():
                outcomes.record(connection, ref, status, open_operations.get(ref, ()), now=now)

    def remove(self, refs: Sequence[Ref], *, now: float) -> None:
        with self._leader_write() as connection:
            # Deployments first: an endpoint's row is removed only after those of its deployments.
            for ref in sorted(refs, key=lambda ref: ref.deployment is None):
                row = resource_rows.find(connection, ref)
                if row is None or not row["deleting"]:
                    continue
                if ref.deployment is None and _deployments_of(connection, ref.endpoint):
                    continue
                model_uses.mark(connection, model_uses.of_model(row.get("model")), now)
                changes.retire(connection, row["generation"])
                connection.execute(delete(resource_rows.table_of(ref)).where(resource_rows.at(ref)))
                revision_rows.forget(connection, ref)
                scale_rows.forget(connection, ref)
                rollout_rows.forget(connection, ref)
                operation_rows.end_removed(connection, [ref], now=now)


def _lower(ref: Ref) -> Ref:
    return Ref(key(ref.endpoint), None if ref.deployment is None else key(ref.deployment))


def _deployment(connection: Connection, row: resource_rows.Row) -> Record:
    found = resource_rows.record(row)
    return replace(found, scale=scale_rows.find(connection, found.ref))


def _deployments_of(connection: Connection, endpoint: str) -> Sequence[resource_rows.Row]:
    """The rows of one endpoint's deployments."""
    query = select(deployments).where(deployments.c.endpoint == endpoint).order_by(deployments.c.key)
    return connection.execute(query).mappings().all()
